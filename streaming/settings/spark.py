"""The table ``[spark]``: options that are passed to Spark, and those that are not to be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

FIXED = {
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.submit.deployMode": "client",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",  # for a few dozen rows of ranges
    "spark.sql.adaptive.enabled": "false",  # a look keeps its number of shares
}
"""Options with which alone the stream is right or quick; ``[spark]`` cannot change them."""
SECRET = re.compile("secret|password|token|access.?key", re.IGNORECASE)
"""The names of options whose values nobody is shown; Spark itself hides the same."""
_WHY = {
    "spark.master": "set stream.master",
    "spark.submit.deployMode": "the driver is the process of `reconcile stream`",
    "spark.speculation": "two attempts of one repair would run at a time",
    "spark.dynamicAllocation.enabled": "each new executor opens its sessions with Cassandra again",
}


def flat(given: object) -> tuple[tuple[str, str], ...]:
    """The options of a TOML table, by name. ``spark.a.b = 1`` is a table in a table there.

    Raises `ValueError` for a name or a value that Spark cannot have.
    """
    if not isinstance(given, Mapping):
        return given  # type: ignore[return-value]  # pydantic checks what is no table
    options = dict(_flat("", given))
    for name, value in options.items():
        if not name.startswith("spark."):
            raise ValueError(f"{name} is no option of Spark's: their names begin with spark.")
        if name == "spark.master" or FIXED.get(name, value) != value:
            why = _WHY.get(name, f"the reconciler needs {FIXED.get(name)}")
            raise ValueError(f"{name} cannot be {value}: {why}")
    return tuple(sorted(options.items()))


def _flat(before: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{before}{name}.", value)
        elif isinstance(value, bool):
            yield before + name, str(value).lower()
        elif isinstance(value, str | int | float):
            yield before + name, str(value)
        else:
            raise ValueError(f"{before}{name} is no text, number, true or false")


SparkOptions = Annotated[tuple[tuple[str, str], ...], BeforeValidator(flat)]
"""Names and values of Spark's options, sorted."""
