"""The contracts of journal, lineage and expiries for a family whose key is a text and a UUID."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraExpiries, CassandraJournal, CassandraLineage, Store
from checkpoints.cassandra.store import Request
from checkpoints.expiries import Expiries, Expiry
from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from checkpoints.memory import MemoryExpiries, MemoryJournal, MemoryLineage
from checkpoints.memory_tables import MemoryTables
from checkpoints.schema import step_002
from checkpoints.schema.step import statements
from checkpoints.schema.upgrade import upgrade
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.declared.writes import SetCells
from reconcilers.rows.deletes import Deletes, ProjectionDelete, RowDeletes, TruthDelete
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Row, Slot
from tests.builders.rights import EVE, LISTING, RIGHTS
from tests.fakes.schema_store import Killed

AT: Micros = 1_700_000_000_000_000
BOB = "bob/Smith%20é@example.com"


@pytest.fixture
def mailboxid() -> UUID:
    return uuid.uuid1()


@pytest.fixture
def family() -> Family:
    """Under a name of its own: tests share the tables."""
    return replace(RIGHTS, name=f"rights_{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="session")
def rights_store(request: pytest.FixtureRequest) -> Store:
    """Our keyspace, with the tables that follow from the family's declaration."""
    session = request.getfixturevalue("cassandra")
    store = Store(session, request.getfixturevalue("reconciler_keyspace"))
    for statement in statements(MemoryTables(RIGHTS).cql, store.keyspace):
        store.change(statement)
    return store


@pytest.fixture
def lineage(kind: str, request: pytest.FixtureRequest) -> Lineage:
    if kind == "memory":
        return MemoryLineage()
    return CassandraLineage(request.getfixturevalue("rights_store"), RIGHTS)


@pytest.fixture
def expiries(kind: str, request: pytest.FixtureRequest) -> Expiries:
    if kind == "memory":
        return MemoryExpiries()
    return CassandraExpiries(request.getfixturevalue("rights_store"), family=RIGHTS)


@pytest.fixture
def journal(kind: str, family: Family, request: pytest.FixtureRequest) -> Journal:
    if kind == "memory":
        return MemoryJournal(families=(family,))
    store = request.getfixturevalue("store")
    return CassandraJournal(store, scope=uuid.uuid4().hex, families=(family,))


def a_finding(family: Family, slot: Slot) -> Finding:
    return Finding(
        family=family.name,
        projection=LISTING.name,
        slot=slot,
        source=str(uuid.uuid1()),
        kind=Kind.DIFFERING_CELLS,
        state=State.INTENDED,
        sentence="differs",
        found_at=AT,
        before=Row({"username": BOB, "rights": "l"}, {"rights": AT}),
        writes=(SetCells(LISTING, slot, AT, {"rights": "lr"}),) if slot.key else (),
    )


def test_a_finding_comes_back_at_its_key(journal: Journal, family: Family, mailboxid: UUID) -> None:
    found = [a_finding(family, Slot(user, mailboxid)) for user in (BOB, EVE, "")]
    found.append(a_finding(family, WHOLE_TABLE))
    for each in found:
        journal.put(each)
    slots = [each.slot for each in found]
    assert journal.recall(family, LISTING.name, slots) == dict(zip(slots, found, strict=True))
    assert len(list(journal.open_findings(family))) == 4
    for each in found[1:]:
        journal.close(each, State.VERIFIED, AT)
    assert list(journal.open_findings(family)) == found[:1]


def test_what_was_remembered_is_found_both_ways_round(lineage: Lineage, mailboxid: UUID) -> None:
    bob, eve = Slot(BOB, mailboxid), Slot(f"{EVE} {mailboxid}", mailboxid)
    entries = [Entry(mailboxid, bob, True, AT), Entry(mailboxid, eve, False)]
    lineage.remember(entries)
    assert set(lineage.of_sources([mailboxid])[mailboxid]) == set(entries)
    assert lineage.of_slots([bob, eve]) == {bob: entries[:1], eve: entries[1:]}
    assert list(lineage.of_group(eve.group)) == [(eve, mailboxid)]
    lineage.expire(entries[:1])
    assert lineage.of_slots([bob]) == {bob: [replace(entries[0], expiring=True)]}


def test_deletes_are_kept_by_what_they_named(lineage: Lineage, mailboxid: UUID) -> None:
    user = f"{BOB} {mailboxid}"
    lineage.remember_deletes(
        [
            TruthDelete(mailboxid, (user, mailboxid), AT),
            TruthDelete(mailboxid, (user, None), AT + 1),
            TruthDelete(mailboxid, (EVE, mailboxid), AT + 2),
            ProjectionDelete(Slot(user, mailboxid), AT + 3),
        ]
    )
    assert lineage.truth_deletes(mailboxid, user) == Deletes(
        frozenset({AT + 1}), {Slot(user, mailboxid): frozenset({AT})}
    )
    assert lineage.projection_deletes(Slot(user, mailboxid)) == RowDeletes(frozenset({AT + 3}))
    assert lineage.truth_deletes_in_group(user, AT, AT + 1)
    assert not lineage.truth_deletes_in_group(user, AT + 2, AT + 9)


def test_what_expires_comes_with_its_key(expiries: Expiries, mailboxid: UUID) -> None:
    due = (2**50 + mailboxid.int % 2**40) // 3_600_000_000 * 3_600_000_000
    expected = Expiry(Slot(BOB, mailboxid), mailboxid, due)
    expiries.expect([expected])
    assert expected in list(expiries.between(due - 1, due))


# --- taken over from the first version -----------------------------------------------------------

FIRST = Path(__file__).resolve().parents[1] / "stack" / "takeover" / "schema.cql"


class DyingCopy(Store):
    """Dies before the statement with this number (from 0)."""

    left = 0

    def run(self, doing: str, requests: Iterable[Request]) -> None:
        def some() -> Iterator[Request]:
            for request in requests:
                if self.left == 0:
                    raise Killed(doing)
                self.left -= 1
                yield request

        super().run(doing, some())


@pytest.fixture
def of_old(cassandra: Session) -> Iterator[str]:
    """A keyspace as commit 258deba left it, with one open finding of each kind of key."""
    own = f"reconciler_{uuid.uuid4().hex[:12]}"
    options = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    cql = FIRST.read_text(encoding="utf-8").replace("$keyspace", own)
    for statement in statements(cql.replace("$replication", options), own):
        cassandra.execute(statement, timeout=60)
    root = "#private&bob/smith"
    rows: list[tuple[str, UUID, int, str | None]] = [
        ("message", UUID(int=5), 7, str(UUID(int=6))),
        ("message", UUID(int=0), 0, None),
        ("mailbox_tally", UUID(int=5), 0, None),
        ("user_tally", uuid.uuid5(uuid.NAMESPACE_URL, root), 0, root),
    ]
    names = {"message": "messages", "mailbox_tally": "mailbox_counters"}
    for family, mailboxid, uid, messageid in rows:
        cassandra.execute(
            f"INSERT INTO {own}.open_findings (family, bucket, projection, mailboxid, uid,"
            " messageid, kind, state, sentence, attempts, tried_at, last_batch, found_at, accepted,"
            " writes, truth) VALUES (%s, 0, %s, %s, %s, %s, 'missing_row', 'held', 's', 1, 2, 'b',"
            f" 3, false, '[]', '[]') USING TIMESTAMP {AT}",
            (family, names.get(family, "current_quota"), mailboxid, uid, messageid),
        )
    yield own
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {own}", timeout=120)


@pytest.mark.stack
def test_findings_of_old_are_taken_over_and_killed_midway_they_end_the_same(
    cassandra: Session, of_old: str
) -> None:
    for left in range(4):
        dying = DyingCopy(cassandra, of_old)
        dying.left = left
        with pytest.raises(Killed):
            upgrade(dying)
    upgrade(Store(cassandra, of_old))
    journal = CassandraJournal(Store(cassandra, of_old))
    for _ in range(2):
        upgrade(Store(cassandra, of_old))
        found = {each.name: list(journal.open_findings(each)) for each in FAMILIES}
        slots = {name: {each.slot for each in findings} for name, findings in found.items()}
        assert slots == {
            "message": {Slot(UUID(int=5), 7), WHOLE_TABLE},
            "mailbox_tally": {Slot(UUID(int=5))},
            "user_tally": {Slot("#private&bob/smith")},
        }
        (of_message,) = [each for each in found["message"] if each.slot.key]
        assert of_message.source == str(UUID(int=6))
    old = cassandra.execute(f"SELECT count(*) AS n FROM {of_old}.open_findings").one()
    assert old is not None
    assert 4 in tuple(old)
    closed = journal.recall(FAMILIES[0], "messages", [WHOLE_TABLE])[WHOLE_TABLE]
    journal.close(closed, State.HEALED, AT)
    step_002.copy(Store(cassandra, of_old))  # by another process, late
    assert journal.recall(FAMILIES[0], "messages", [WHOLE_TABLE]) == {}
