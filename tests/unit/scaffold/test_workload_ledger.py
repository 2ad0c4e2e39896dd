"""A whole workload on tables in memory leaves just what its ledger says.

The comparison reads the tables, the ledger knows the statements: each is checked by the other.
"""

from collections import Counter
from typing import Any

import pytest

from deploy.comparison.differences import differences
from deploy.comparison.snapshot import Snapshot, read_whole
from deploy.mailserver.attachments import REFERENCES, Shape
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.faults import COUNTER_FAULTS, INDEX_FAULTS, MESSAGE_FAULTS, FaultKind
from deploy.mailserver.history import MESSAGES, RowPlace
from deploy.mailserver.indexes import BY_PROJECTION, INDEX_PROJECTIONS
from deploy.mailserver.ledger import HEALED, Ledger
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import RIGHTS_PROJECTIONS, USER_RIGHTS
from deploy.mailserver.variant import Variant
from deploy.mailserver.workload import Workload, run
from tests.fakes.memory_cassandra import KEYSPACE, MemoryCassandra

UNTIL_3_6 = Variant(attachments=Shape.UNTIL_3_6)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.mailserver.projection.FIRST_PAUSE_S", 0.0)


LOST = {FaultKind.NOT_SENT, FaultKind.DIED_BETWEEN_WRITES}
HEALED_BY_CHANCE = {"applicable_flags"}
"""It has one row a mailbox: the next write of the same flag may bring all that was lost."""


def worked(**unlucky: Any) -> tuple[Ledger, Snapshot]:
    """Users worked on tables in memory; returns the ledger, and what the tables hold."""
    session: Any = MemoryCassandra()
    workload = Workload(operations=300, rate=1e6, late_s=(0.01, 0.1), **unlucky)
    ledger = run(session, KEYSPACE, workload)
    return ledger, read_whole(session, KEYSPACE)


def wrong_places(tables: Snapshot) -> set[RowPlace]:
    return {difference.place for difference in differences(tables)}


def unhealed(ledger: Ledger) -> set[RowPlace]:
    entries = ledger.entries()
    return {place for entry in entries if HEALED not in entry.accepts for place in entry.places}


def test_without_faults_every_table_is_right() -> None:
    ledger, tables = worked()
    assert list(differences(tables)) == []
    assert ledger.entries() == []
    assert len(tables.roots) >= 9
    assert len(tables.user_rights) > 3
    assert len(tables.list_rights) > len(tables.user_rights)
    assert any(tables.contents.values())
    assert not tables.references
    assert all(len(tables.indexed[name]) > 10 for name in BY_PROJECTION)
    assert all(len(tables.counted[name]) >= 3 for name in COUNTER_TABLES)
    assert tables.applicable.keys() <= tables.roots.keys()


def test_without_faults_the_references_of_an_older_james_are_right() -> None:
    _, tables = worked(variant=UNTIL_3_6)
    assert list(differences(tables)) == []
    assert len(tables.references) > 10


@pytest.mark.parametrize("kind", MESSAGE_FAULTS)
def test_faults_of_messages(kind: FaultKind) -> None:
    ledger, tables = worked(faults=60, fault_kinds=(kind,))
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    assert unhealed(ledger) == {place for place in wrong if place[0] == MESSAGES}
    if kind in LOST:
        assert len(unhealed(ledger)) > 10
        projections = {projection for projection, _ in wrong}
        assert projections >= set(COUNTER_TABLES)
        assert projections & set(BY_PROJECTION)


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_faults_of_indexes(kind: FaultKind) -> None:
    ledger, tables = worked(index_faults=30, index_fault_kinds=(kind,))
    met = Counter((entry.projection, entry.kind) for entry in ledger.entries())
    assert met == {(name, kind): 30 for name in INDEX_PROJECTIONS}
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    indexed = {place for place in wrong if place[0] in INDEX_PROJECTIONS}
    assert unhealed(ledger) <= indexed
    names = {name for name, _ in indexed}
    if kind in LOST:
        assert names >= set(INDEX_PROJECTIONS) - HEALED_BY_CHANCE
    else:
        assert names == set()
    if kind is not FaultKind.DIED_BETWEEN_WRITES:  # a death takes statements after it along
        assert unhealed(ledger) == indexed


@pytest.mark.parametrize("kind", COUNTER_FAULTS)
def test_faults_of_counters(kind: FaultKind) -> None:
    ledger, tables = worked(counter_faults=60, counter_fault_kinds=(kind,))
    met = Counter((entry.projection, entry.kind) for entry in ledger.entries())
    assert met == {(name, kind): 60 for name in COUNTER_TABLES}
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    assert {name for name, _ in wrong} == set(COUNTER_TABLES)


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_faults_of_rights(kind: FaultKind) -> None:
    ledger, tables = worked(
        other_faults=dict.fromkeys(RIGHTS_PROJECTIONS, 15), other_fault_kinds=(kind,)
    )
    met = Counter((entry.projection, entry.kind) for entry in ledger.entries())
    assert met == {(name, kind): 15 for name in RIGHTS_PROJECTIONS}
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    if kind in LOST:
        assert {name for name, _ in wrong} == set(RIGHTS_PROJECTIONS)
    else:  # a listener that gives up after the rows of users, and before the event
        assert {name for name, _ in wrong} <= {USER_RIGHTS}
    assert unhealed(ledger) <= wrong


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_faults_of_references(kind: FaultKind) -> None:
    ledger, tables = worked(
        other_faults={REFERENCES: 15}, other_fault_kinds=(kind,), variant=UNTIL_3_6
    )
    assert len(ledger.entries()) == 15
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    assert {name for name, _ in wrong} <= {REFERENCES}
    assert unhealed(ledger) <= wrong
    if kind is FaultKind.APPLIED_BUT_TIMED_OUT:
        assert wrong


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_faults_of_mailboxes(kind: FaultKind) -> None:
    ledger, tables = worked(other_faults={MAILBOXES: 6}, other_fault_kinds=(kind,))
    assert len(ledger.entries()) == 6
    wrong = wrong_places(tables)
    assert wrong == ledger.differing(tables.roots)
    assert {name for name, _ in wrong} <= {MAILBOXES}
    assert unhealed(ledger) <= wrong


def test_two_uids_of_a_message_are_found_in_untidy_mailboxes_only() -> None:
    ledger, tables = worked(faults=150, fault_kinds=(FaultKind.DIED_BETWEEN_WRITES,))
    undecided = [entry for entry in ledger.entries() if len(set(entry.accepts) - {HEALED}) > 1]
    owners = {tables.roots[mailboxid] for entry in undecided for mailboxid, _ in entry.rows}
    assert all(owner.startswith("#private&user2-") for owner in owners)
    twice = Counter(
        (mailboxid, cells["messageid"])
        for (mailboxid, _), claims in tables.truth.items()
        for cells in claims
    )
    untidy = {tables.roots[mailboxid] for (mailboxid, _), n in twice.items() if n > 1}
    assert len(untidy) == 1
    assert owners <= untidy


def test_a_difference_says_where_it_is() -> None:
    _, tables = worked(counter_faults=30, index_faults=30)
    told = {each.projection: str(each) for each in differences(tables)}
    assert "current_quota: wrong_counter in messagecount is " in told["current_quota"]
    assert told["current_quota"].split(": ")[-1] in tables.roots.values()
    assert ": mailbox " in told["unseen_uids"]
    assert ", uid 0, message unknown" in told["applicable_flags"]
