"""Findings as a table, as JSON, as JSON lines and as CSV. Times are shown in UTC."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from checkpoints.clock import to_seconds
from checkpoints.codec import Json, accepted_from_json
from reconcilers.declared.families import FAMILIES, family_named
from reconcilers.rows.finding import WAITING, with_reason
from reconcilers.words.key import slot_of, text_of

NAMES = tuple(
    dict.fromkeys(
        column.name
        for family in FAMILIES
        for column in (*family.key, *(() if family.is_source_in_key else (family.truth.source,)))
    )
)
"""What the keys and sources of all families are called, each once; those of messages first."""
COLUMNS = (
    "time",
    "family",
    "projection",
    *NAMES,
    "kind",
    "state",
    "attempts",
    "accepted",
    "found_at",
    "next_look",
    "waits",
    "sentence",
)
TIMES = frozenset({"time", "found_at", "next_look"})
FORMULA = ("=", "+", "-", "@")


def as_table(findings: Iterable[Json]) -> Iterator[str]:
    """Two lines a finding: its place and kind, then the sentence."""
    nothing = True
    for each in findings:
        nothing = False
        attempts = f", {each['attempts']} attempts" if each["attempts"] else ""
        accepted = f", accepted: {_accepted(each)}" if each["accepted"] else ""
        yield (
            f"{_shown('time', _time(each))}  {each['state']:<10} {each['kind']:<23}"
            f" {each['projection']} {_key(each)}{attempts}{accepted}"
        )
        yield f"    {_told(each)}"
    if nothing:
        yield "no findings"


def as_json_lines(findings: Iterable[Json]) -> Iterator[str]:
    """All fields that the journal stores, one object a line; times are µs."""
    for each in findings:
        yield json.dumps(each)


def as_json(findings: Iterable[Json]) -> Iterator[str]:
    """All fields that the journal stores, as one JSON array; times are µs."""
    before = "["
    for each in findings:
        yield f"{before}{json.dumps(each)}"
        before = ","
    yield "[]" if before == "[" else "]"


def as_csv(findings: Iterable[Json]) -> Iterator[str]:
    """A header, then the fields of `COLUMNS`."""
    yield ",".join(COLUMNS)
    for each in findings:
        waits = _waits(each).get("wait")
        values = each | {"time": _time(each), "sentence": _told(each), "waits": waits}
        values["accepted"] = _accepted(each)
        yield _csv_line([_shown(column, values.get(column)) for column in COLUMNS])


def _key(finding: Json) -> str:
    """The key as the command line takes it."""
    columns = family_named(finding["family"]).key
    return text_of(slot_of(columns, finding)) or "whole table"


def _time(finding: Json) -> object:
    """The time of a line of the log, or when an open finding was found."""
    return finding.get("at", finding.get("found_at"))


def _told(finding: Json) -> str:
    """The sentence and what the finding waits for."""
    return with_reason(finding["sentence"], finding["state"], _waits(finding).get("why", ""))


def _accepted(finding: Json) -> str:
    """What a person has accepted, each with its kind and reason."""
    return "; ".join(str(accepted_from_json(each).reason) for each in finding["accepted"])


def _waits(finding: Json) -> Json:
    """What the finding waits for; empty in a state that does not wait."""
    waits: Json = finding.get("waits") or {}
    return waits if finding["state"] in WAITING else {}


def _shown(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column in TIMES:
        at = datetime.fromtimestamp(to_seconds(value), UTC)
        return at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return str(value)


def _csv_line(values: list[str]) -> str:
    """One line. A text that a spreadsheet reads as a formula gets an apostrophe."""
    text = io.StringIO()
    safe = [f"'{value}" if value.startswith(FORMULA) else value for value in values]
    csv.writer(text, lineterminator="").writerow(safe)
    return text.getvalue()


FORMATS: dict[str, Callable[[Iterable[Json]], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "jsonl": as_json_lines,
    "csv": as_csv,
}
