"""Tables whose writes no agent reports, though it reports those of others. Pure.

An agent that was started before a table with a user-defined type existed drops all events of it
until it is restarted. Nothing else shows that: its canaries come, and no event is missed that one
could count. So some rows that were written lately are compared with the events that came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconcilers.declared.family import Family, Schema
from reconcilers.words.model import SECOND, Micros

MINUTE: Micros = 60 * SECOND
DAY: Micros = 24 * 60 * MINUTE
SETTLED: Micros = 2 * MINUTE
"""A write's event may come so late: after the commit log's sync, from a busy agent."""
MOST = 100
"""Rows that are compared."""
SCALARS = frozenset(
    {
        *("ascii", "text", "varchar", "blob", "boolean", "date", "decimal", "double", "duration"),
        *("float", "inet", "int", "bigint", "smallint", "tinyint", "varint", "time", "timestamp"),
        *("timeuuid", "uuid"),
    }
)
BUILT_IN = SCALARS | {"counter", "frozen", "list", "map", "set", "tuple", "vector"}


@dataclass(frozen=True, slots=True)
class RowWrite:
    """A row that was written: its key as an event names it, and the write time (µs)."""

    key: str
    at: Micros


@dataclass(frozen=True, slots=True)
class TableHeard:
    """How many late writes of a table were compared, and of how many no event came."""

    table: str
    compared: int
    unheard: int


def of_user_types(families: Iterable[Family], schema: Schema) -> dict[str, str]:
    """The truth tables with a user-defined type that wake a family, each with its key's column."""
    return {
        table: family.truth.source.name
        for family in families
        for table in family.wakes_on
        if table in family.truth.tables and _is_user_typed(schema.get(table, {}))
    }


def _is_user_typed(columns: Mapping[str, str]) -> bool:
    words = (word for each in columns.values() for word in re.findall(r"[a-z_]\w*", each))
    return any(word not in BUILT_IN for word in words)


def timed_column(columns: Mapping[str, str], key: str) -> str | None:
    """A column of a table with a one-column key whose write time can be read; None without one."""
    timed = (name for name in sorted(columns) if name != key and columns[name] in SCALARS)
    return next(timed, None)


def comparable(
    writes: Iterable[RowWrite], captured_since: Micros, now: Micros
) -> tuple[RowWrite, ...]:
    """The newest writes of one minute whose events must have come; all times are µs.

    None of them is older than a day, or than a minute after capture was turned on.
    """
    since = max(captured_since + MINUTE, now - DAY)
    fit = sorted((each for each in writes if since < each.at < now - SETTLED), key=_at)
    return tuple(each for each in fit if each.at > fit[-1].at - MINUTE)[-MOST:]


def _at(write: RowWrite) -> Micros:
    return write.at
