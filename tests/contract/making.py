"""Values for the contract tests; ids are new in every test, for the tables are shared."""

import dataclasses
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import Store, create_schema
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.declared.writes import AddToSet, DeleteRow, RemoveFromSet, SetCells
from reconcilers.rows.finding import Finding, State
from reconcilers.words.millis import Millis
from reconcilers.words.model import Kind, Row, Slot

KINDS = ("memory", pytest.param("cassandra", marks=pytest.mark.stack))
MESSAGES = MESSAGE.projections[0]
HOUR = 3_600_000_000
DAY = 24 * HOUR
DAYS_OF_A_TEST = 40
_tests = count(1)


def days_of_its_own() -> int:
    """The first µs, after 1970, of days of which no other test of this run writes."""
    return next(_tests) * DAYS_OF_A_TEST * DAY


def an_hour_of_its_own() -> int:
    """A whole hour (µs), a year ahead and more; it and those after it are one test's alone."""
    now = time.time_ns() // 1000 // HOUR
    return (now + 24 * 365) * HOUR + days_of_its_own()


@dataclasses.dataclass
class SetClock:
    """A clock that stands until it is set (µs)."""

    now: int

    def __call__(self) -> int:
        return self.now

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.now / 1_000_000, UTC).date()


def a_name(kind: str) -> str:
    """One that no other test uses."""
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def a_store(session: Session) -> Iterator[Store]:
    """In a keyspace of the test's own, which it may lose."""
    store = Store(session, f"lost_{uuid.uuid4().hex[:12]}")
    create_schema(session, store.keyspace)
    yield store
    session.execute(f"DROP KEYSPACE IF EXISTS {store.keyspace}")


def a_family() -> Family:
    """Family *message* under a name that no other test uses."""
    return dataclasses.replace(MESSAGE, name=f"message_{uuid.uuid4().hex[:8]}")


def a_slot(uid: int = 7) -> Slot:
    return Slot(uuid.uuid1(), uid)


def a_row() -> Row:
    return Row(
        {
            "messageid": uuid.uuid1(),
            "modseq": 2**62,
            "flagseen": False,
            "userflags": frozenset({"a", "ü b"}),
            "internaldate": Millis(1_795_255_200_123),
            "threadid": None,
            "headercontent": "id\"with'quotes",
        },
        {"modseq": 1_700_000_000_000_001, "messageid": 1_700_000_000_000_000},
    )


def a_finding(family: Family, slot: Slot, **changes: Any) -> Finding:
    """A finding with a value in every field."""
    row = a_row()
    at = 1_700_000_000_000_002
    finding = Finding(
        family=family.name,
        projection=MESSAGES.name,
        slot=slot,
        source=str(row.cells["messageid"]),
        kind=Kind.DIFFERING_CELLS,
        state=State.INTENDED,
        sentence="messages: differs in flagseen, userflags – 'ü'",
        found_at=1_700_000_000_500_000,
        oldest=1_700_000_000_000_000,
        attempts=2,
        batch="message-17",
        before=row,
        writes=(
            SetCells(MESSAGES, slot, at, {"modseq": 5, "flagseen": None}),
            AddToSet(MESSAGES, slot, at, "userflags", frozenset({"x"})),
            RemoveFromSet(MESSAGES, slot, at, "userflags", frozenset({"y", "z"})),
            DeleteRow(MESSAGES, slot, at),
        ),
        next_look=1_700_000_001_000_000,
        truth=(a_row(), Row({"uid": 7})),
    )
    return dataclasses.replace(finding, **changes)
