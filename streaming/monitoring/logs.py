"""JSON logs: one line an event, a sentence in ``message``, the facts of a finding beside it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

TALKATIVE = ("cassandra", "kafka", "py4j")
"""Libraries that log what they then raise; our own line for the error is enough."""
ROOT = "root"
"""The logger that py4j uses for such lines too; none of ours does."""
SPARK = "spark"
"""The logger of the lines that Spark's JVM writes."""


class JsonLines(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """``time`` (ISO 8601, UTC), ``level``, ``logger`` and ``message``.

        Also ``finding``, or ``error`` with its ``traceback``, if the record has one.
        """
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        finding = getattr(record, "finding", None)
        if finding is not None:
            line["finding"] = finding
        traceback = getattr(record, "traceback", None)
        if traceback:  # of another process
            line["traceback"] = traceback
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = repr(record.exc_info[1])
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure() -> None:
    """Send this process's logs to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: record.name != ROOT)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
