"""Rows of one message for the tests of the pure core: a small schema, a truth, a projection."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.rows.confirm import Moment
from reconcilers.rows.memory import NOTHING_REMEMBERED, Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.millis import Millis
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Value

SECOND: Micros = 1_000_000
DELAY: Micros = 45 * SECOND
NOW: Micros = 1_800_000_000 * SECOND
LONG_AGO: Micros = NOW - 3600 * SECOND
MOMENT = Moment(began=NOW, delay=DELAY)

MAILBOX = UUID("11111111-0000-1000-8000-000000000001")
OTHER_MAILBOX = UUID("11111111-0000-1000-8000-00000000000f")
MESSAGE_ID = UUID("22222222-0000-1000-8000-000000000002")
OTHER_ID = UUID("33333333-0000-1000-8000-000000000003")
SLOT = Slot(MAILBOX, 7)

CELLS = {
    "modseq": "bigint",
    "flagseen": "boolean",
    "flaguser": "boolean",
    "userflags": "set<text>",
    "threadid": "timeuuid",
    "internaldate": "timestamp",
    "save_date": "timestamp",
    "bodystartoctet": "int",
    "fullcontentoctets": "bigint",
    "headercontent": "text",
}
SCHEMA = {
    "imapuidtable": {"messageid": "timeuuid", "mailboxid": "timeuuid", "uid": "bigint"} | CELLS,
    "messageidtable": {"mailboxid": "timeuuid", "uid": "bigint", "messageid": "timeuuid"} | CELLS,
}
FAMILY: Family = bind(keeping(MESSAGE, ()), SCHEMA)
PROJECTION: Projection = FAMILY.projections[0]

COMPLETE: Mapping[str, Value] = {
    "messageid": MESSAGE_ID,
    "mailboxid": MAILBOX,
    "uid": 7,
    "modseq": 12,
    "flagseen": True,
    "flaguser": False,
    "userflags": frozenset({"work"}),
    "threadid": None,
    "internaldate": Millis(1_793_491_200_000),
    "save_date": None,
    "bodystartoctet": 100,
    "fullcontentoctets": 2000,
    "headercontent": "header-blob",
}
UNTIMED = frozenset({"mailboxid", "uid", "userflags"})


NO_CELLS: Mapping[str, Value] = {}


def row(
    cells: Mapping[str, Value] = NO_CELLS,
    /,
    *,
    at: Micros = LONG_AGO,
    written: Mapping[str, Micros] | None = None,
    **named: Value,
) -> Row:
    """A complete row, written at one time but for ``written``, with some cells of other values."""
    values = {**COMPLETE, **cells, **named}
    times = {name: at for name, cell in values.items() if cell is not None and name not in UNTIMED}
    return Row(values, {**times, **(written or {})})


def truth(
    cells: Mapping[str, Value] = NO_CELLS, /, *, at: Micros = LONG_AGO, **named: Value
) -> Row:
    """A truth row: its messageid is a key, so it has no write time."""
    made = row({**cells, **named}, at=at)
    return Row(
        made.cells, {name: time for name, time in made.written.items() if name != "messageid"}
    )


def partial(*, at: Micros = LONG_AGO, **named: Value) -> Row:
    """A projection row of which only the named cells are there."""
    empty: dict[str, Value] = dict.fromkeys(COMPLETE)
    return row(empty | {"mailboxid": MAILBOX, "uid": 7, "userflags": frozenset()} | named, at=at)


def seen(
    actual: Row | None,
    *truths: Row,
    memory: Memory = NOTHING_REMEMBERED,
    present: frozenset[Slot] = frozenset(),
    consulted: frozenset[KeyValue] = frozenset({MESSAGE_ID}),
) -> Seen:
    """One look at `SLOT`, not the first: what is extra was so a delay ago."""
    return Seen(SLOT, actual, truths, consulted, memory, present, Kind.EXTRA_ROW)
