"""The contracts of journal, lineage and expiries for a family whose key is a text and a UUID."""

from __future__ import annotations

import uuid
from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.cassandra import CassandraExpiries, CassandraJournal, CassandraLineage, Store
from checkpoints.expiries import Expiries, Expiry
from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from checkpoints.lineage_tables import LineageTables
from checkpoints.schema.step import statements
from reconcilers.declared.family import Family
from reconcilers.declared.writes import SetCells
from reconcilers.rows.deletes import Deletes, ProjectionDelete, RowDeletes, TruthDelete
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Row, Slot
from tests.builders.rights import EVE, LISTING, RIGHTS
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal, MemoryLineage

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
    for statement in statements(LineageTables(RIGHTS).cql, store.keyspace):
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
