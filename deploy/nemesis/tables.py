"""James's tables as the checker knows them: keys, what the product may write, and cells as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from cassandra.util import SortedSet

JsonValue = Any
"""A value as JSON has it: times in ms since 1970, ids as text, tuples as lists."""
RowId = tuple[JsonValue, ...]
"""The values of a row's key, or of a prefix of it, in the order of the table's key."""
MARKER = ""
"""The name of the cell that stands for a row without any other cell."""


class TablePart(StrEnum):
    """What a table is for the product."""

    TRUTH = "truth"
    """The product never writes it."""
    PROJECTION = "projection"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class MailTable:
    """A table. Without the cell `readable` James reads no row.

    `unjudged` are columns of a truth table that the product may write; they are not judged.
    """

    key: tuple[str, ...]
    part: TablePart = TablePart.TRUTH
    readable: str = MARKER
    unjudged: frozenset[str] = frozenset()


TABLES: Mapping[str, MailTable] = {
    "imapuidtable": MailTable(("messageid", "mailboxid", "uid")),
    "mailbox": MailTable(("id",)),
    "mailboxpathv3": MailTable(("namespace", "user", "mailboxname")),
    "eventstore": MailTable(("aggregateid", "eventid")),
    "messagev2": MailTable(("messageid",)),
    "messagev3": MailTable(("messageid",)),
    "attachmentv2": MailTable(("idasuuid",), unjudged=frozenset({"message_id"})),
    "messageidtable": MailTable(("mailboxid", "uid"), TablePart.PROJECTION, "messageid"),
    "messagedeleted": MailTable(("mailboxid", "uid"), TablePart.PROJECTION),
    "firstunseen": MailTable(("mailboxid", "uid"), TablePart.PROJECTION),
    "mailboxrecents": MailTable(("mailboxid", "recent_mesage_uid"), TablePart.PROJECTION),
    "applicableflag": MailTable(("mailboxid",), TablePart.PROJECTION),
    "aclv2": MailTable(("id", "key"), TablePart.PROJECTION),
    "usermailboxacl": MailTable(("username", "mailboxid"), TablePart.PROJECTION, "rights"),
    "attachmentmessageid": MailTable(
        ("attachmentidasuuid", "messageid"), TablePart.PROJECTION, "attachmentid"
    ),
    "mailboxcounters": MailTable(("mailboxid",), TablePart.COUNTER),
    "currentquota": MailTable(("quotaroot",), TablePart.COUNTER),
}


@dataclass(frozen=True, slots=True)
class Held:
    """A cell as it was read: its value and write time (µs), None if the time cannot be read."""

    value: JsonValue
    time: int | None = None


ABSENT = Held(None)


@dataclass(frozen=True, slots=True)
class FinalRow:
    """A row as the driver returns it: values by column, and write times (µs) by column.

    The time of a set or list is a list, one time for each element in order.
    """

    values: Mapping[str, Any]
    times: Mapping[str, Any] = field(default_factory=dict)


FinalTables = Mapping[str, Sequence[FinalRow]]
"""All rows of all tables at the end of a run."""


def canonical(value: Any) -> JsonValue:
    """A value of a statement or of a row; the same one from both. A time without zone is UTC."""
    match value:
        case UUID():
            return str(value)
        case datetime():
            at = value if value.tzinfo else value.replace(tzinfo=UTC)
            return round(at.timestamp() * 1000)
        case set() | frozenset() | SortedSet():
            return sorted(canonical(each) for each in value)
        case list() | tuple():
            return [canonical(each) for each in value]
    return value


def element_name(column: str, element: JsonValue) -> str:
    """The name of the cell of one element of a set or list."""
    return f"{column}.{element if isinstance(element, str) else json.dumps(element)}"


def row_id(table: str, values: Mapping[str, Any]) -> RowId:
    """The key of a row, or as much of it as is given."""
    return tuple(canonical(values[name]) for name in TABLES[table].key if name in values)


def held_cells(table: str, row: FinalRow) -> dict[str, Held]:
    """The cells of a row that have a value. A set's elements are cells of their own."""
    cells: dict[str, Held] = {}
    for column, value in row.values.items():
        if value is None or column in TABLES[table].key:
            continue
        time = row.times.get(column)
        if isinstance(value, set | frozenset | SortedSet | list):
            elements = value if isinstance(value, list) else sorted(value)
            times = time if isinstance(time, list) else [None] * len(elements)
            for element, at in zip(elements, times, strict=True):
                cells[element_name(column, canonical(element))] = Held(True, at)
        else:
            cells[column] = Held(canonical(value), time)
    return cells or {MARKER: Held(True)}
