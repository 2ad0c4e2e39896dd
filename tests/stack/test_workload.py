"""The mail workload on a real Cassandra, without a reconciler: it leaves what its ledger says."""

import uuid
from collections import Counter
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from deploy.comparison.differences import differences, message_differences
from deploy.comparison.full_comparison import full_comparison
from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.comparison.snapshot import read_whole
from deploy.demo.oddities import plant_repaired, plant_reported
from deploy.demo.planter import Planter
from deploy.demo.verdict import Exhibits, beside_reported_rows
from deploy.mailserver.attachments import REFERENCES, Shape
from deploy.mailserver.counters import COUNTER_TABLES, CURRENT_QUOTA
from deploy.mailserver.faults import COUNTER_FAULTS, INDEX_FAULTS, MESSAGE_FAULTS, FaultKind
from deploy.mailserver.filler import fill, touch
from deploy.mailserver.history import MESSAGES, RowPlace
from deploy.mailserver.indexes import APPLICABLE_FLAGS, INDEX_PROJECTIONS
from deploy.mailserver.james import create_schema
from deploy.mailserver.ledger import HEALED, VERIFIED, Ledger, held_rows
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import RIGHTS_PROJECTIONS
from deploy.mailserver.variant import Variant
from deploy.mailserver.workload import Workload, run

pytestmark = pytest.mark.stack

TABLES = (
    "imapuidtable",
    "messageidtable",
    "firstunseen",
    "mailboxrecents",
    "messagedeleted",
    "applicableflag",
    "mailboxcounters",
    "currentquota",
    "mailbox",
    "mailboxpathv3",
    "eventstore",
    "usermailboxacl",
    "aclv2",
    "messagev3",
    "attachmentv2",
    "attachmentmessageid",
)


@pytest.fixture(scope="module")
def mail_tables(cassandra: Session) -> Iterator[str]:
    """One keyspace for all tests here, change capture off: nobody listens."""
    keyspace = f"workload_{uuid.uuid4().hex[:12]}"
    create_schema(cassandra, keyspace)
    yield keyspace
    cassandra.execute(f"DROP KEYSPACE {keyspace}")


@pytest.fixture
def mail_keyspace(cassandra: Session, mail_tables: str) -> str:
    """The same keyspace, without messages. Each run has users and mailboxes of its own."""
    for table in TABLES:
        cassandra.execute(f"TRUNCATE {mail_tables}.{table}")
    return mail_tables


def found(session: Session, keyspace: str) -> list[Mismatch]:
    return list(full_comparison(session, keyspace))


def wrong_places(session: Session, keyspace: str, ledger: Ledger) -> set[RowPlace]:
    """What the comparison finds, which must be what the ledger expects."""
    tables = read_whole(session, keyspace)
    wrong = {difference.place for difference in differences(tables)}
    assert wrong == ledger.differing(tables.roots)
    return wrong


def unhealed(ledger: Ledger) -> set[RowPlace]:
    entries = ledger.entries()
    return {place for entry in entries if HEALED not in entry.accepts for place in entry.places}


def test_a_workload_without_faults_leaves_no_difference(
    cassandra: Session, mail_keyspace: str
) -> None:
    ledger = run(cassandra, mail_keyspace, Workload(operations=300, rate=1000.0))
    assert found(cassandra, mail_keyspace) == []
    assert ledger.entries() == []
    for table in TABLES:
        rows = cassandra.execute(f"SELECT count(*) FROM {mail_keyspace}.{table}").one()
        fewest = {"messageidtable": 50, "currentquota": 3, "attachmentmessageid": 0}
        assert rows.count >= fewest.get(table, 5), table


def test_clients_with_clocks_apart_leave_no_difference(
    cassandra: Session, mail_keyspace: str
) -> None:
    workload = Workload(operations=200, rate=1000.0, clock_offsets_ms=(-300, 0, 0, 300))
    run(cassandra, mail_keyspace, workload)
    assert found(cassandra, mail_keyspace) == []


@pytest.mark.parametrize("kind", MESSAGE_FAULTS)
def test_each_kind_of_fault_leaves_exactly_the_expected_differences(
    cassandra: Session, mail_keyspace: str, kind: FaultKind
) -> None:
    workload = Workload(
        operations=300, rate=1000.0, faults=60, fault_kinds=(kind,), late_s=(0.2, 1.0)
    )
    ledger = run(cassandra, mail_keyspace, workload)
    entries = ledger.entries()
    assert len(entries) == 60
    assert {entry.kind for entry in entries} == {kind}
    wrong = wrong_places(cassandra, mail_keyspace, ledger)
    assert unhealed(ledger) == {place for place in wrong if place[0] == MESSAGES}
    if kind in {FaultKind.APPLIED_BUT_TIMED_OUT, FaultKind.LATE}:
        assert unhealed(ledger) == set()
    elif kind is not FaultKind.LATE_RETRIED:
        assert len(unhealed(ledger)) > 10


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_each_kind_of_fault_of_an_index(
    cassandra: Session, mail_keyspace: str, kind: FaultKind
) -> None:
    workload = Workload(operations=300, rate=1000.0, index_faults=30, index_fault_kinds=(kind,))
    ledger = run(cassandra, mail_keyspace, workload)
    entries = ledger.entries()
    assert len(entries) == 30 * len(INDEX_PROJECTIONS)
    assert {entry.kind for entry in entries} == {kind}
    wrong = wrong_places(cassandra, mail_keyspace, ledger)
    indexed = {place for place in wrong if place[0] in INDEX_PROJECTIONS}
    assert not any(projection == MESSAGES for projection, _ in wrong)
    assert unhealed(ledger) <= indexed
    wrong_tables = {projection for projection, _ in indexed}
    if kind is FaultKind.APPLIED_BUT_TIMED_OUT:
        assert wrong_tables == set()
    else:  # a lost user flag is healed by the next message that brings it: perhaps all were
        assert wrong_tables | {APPLICABLE_FLAGS} == set(INDEX_PROJECTIONS)


@pytest.mark.parametrize("kind", COUNTER_FAULTS)
def test_each_kind_of_fault_of_a_counter(
    cassandra: Session, mail_keyspace: str, kind: FaultKind
) -> None:
    workload = Workload(operations=300, rate=1000.0, counter_faults=30, counter_fault_kinds=(kind,))
    ledger = run(cassandra, mail_keyspace, workload)
    entries = ledger.entries()
    assert len(entries) == 30 * len(COUNTER_TABLES)
    assert {entry.kind for entry in entries} == {kind}
    wrong = wrong_places(cassandra, mail_keyspace, ledger)
    assert {projection for projection, _ in wrong} == set(COUNTER_TABLES)


@pytest.mark.parametrize("kind", INDEX_FAULTS)
def test_each_kind_of_fault_of_rights_references_and_mailboxes(
    cassandra: Session, mail_keyspace: str, kind: FaultKind
) -> None:
    unlucky = {**dict.fromkeys((*RIGHTS_PROJECTIONS, REFERENCES), 15), MAILBOXES: 6}
    workload = Workload(
        operations=300,
        rate=1000.0,
        other_faults=unlucky,
        other_fault_kinds=(kind,),
        variant=Variant(attachments=Shape.UNTIL_3_6),
    )
    ledger = run(cassandra, mail_keyspace, workload)
    met = Counter(entry.projection for entry in ledger.entries())
    assert met == unlucky
    wrong = wrong_places(cassandra, mail_keyspace, ledger)
    assert unhealed(ledger) <= wrong
    names = {projection for projection, _ in wrong}
    assert names <= unlucky.keys()
    if kind is not FaultKind.APPLIED_BUT_TIMED_OUT:
        assert names >= set(RIGHTS_PROJECTIONS)


def test_without_faults_nothing_differs(cassandra: Session, mail_keyspace: str) -> None:
    ledger = run(cassandra, mail_keyspace, Workload(operations=200, rate=1000.0))
    assert wrong_places(cassandra, mail_keyspace, ledger) == set()
    tables = read_whole(cassandra, mail_keyspace)
    assert tables.user_rights
    assert any(tables.contents.values())
    assert not tables.references


def test_the_planted_oddities_are_there_to_be_found(cassandra: Session, mail_keyspace: str) -> None:
    ledger = Ledger()
    plant_reported(Planter(cassandra, mail_keyspace, ledger))
    plant_repaired(Planter(cassandra, mail_keyspace, ledger))
    entries = ledger.entries()
    planted = {d.row: d for d in found(cassandra, mail_keyspace) if d.projection == MESSAGES}
    assert planted.keys() == {row for entry in entries for row in entry.rows}
    kinds = {entry.kind: planted[entry.rows[0]].kind for entry in entries}
    assert kinds.pop("incomplete_truth_row") == DifferenceKind.INCOMPLETE_TRUTH
    assert kinds.pop("duplicate_uid") == DifferenceKind.DUPLICATE_UID
    assert kinds.pop("shadowed_delete") == DifferenceKind.MISSING
    assert kinds.pop("ambiguous_range_delete") == DifferenceKind.EXTRA
    assert kinds.pop("content_lost") == DifferenceKind.EXTRA
    assert kinds.pop("missing_row") == DifferenceKind.MISSING
    assert kinds.pop("wrong_uid") == DifferenceKind.MISSING
    assert kinds.pop("partial_row_of_deleted") == DifferenceKind.EXTRA
    assert set(kinds.values()) == {DifferenceKind.CELLS}
    reported = [entry for entry in entries if entry.accepts != (VERIFIED,)]
    assert len(reported) == len(held_rows(entries)) == 6


def test_only_beside_reported_rows_are_other_tables_wrong(
    cassandra: Session, mail_keyspace: str
) -> None:
    """The planted messages are indexed and counted as the mail server does it.

    The truth gains two rows and loses two, so the mailbox's count may be right by chance.
    """
    ledger = Ledger()
    plant_repaired(Planter(cassandra, mail_keyspace, ledger))
    repaired = read_whole(cassandra, mail_keyspace)
    assert {each.projection for each in differences(repaired)} == {MESSAGES}
    plant_reported(Planter(cassandra, mail_keyspace, ledger))
    tables = read_whole(cassandra, mail_keyspace)
    wrong = list(differences(tables))
    beside = beside_reported_rows(Exhibits(ledger.entries(), [], [], wrong, tables.roots))
    others = {each.place for each in wrong if each.projection != MESSAGES}
    assert {CURRENT_QUOTA.projection} <= {projection for projection, _ in others}
    assert {projection for projection, _ in others} <= set(COUNTER_TABLES)
    assert others <= beside


def test_filled_and_touched_rows_are_consistent(cassandra: Session, mail_keyspace: str) -> None:
    mailboxes = fill(cassandra, mail_keyspace, messages=2_000, mailboxes=7)
    assert len(mailboxes) == 7
    assert touch(cassandra, mail_keyspace, rows=500) == 500
    assert list(message_differences(read_whole(cassandra, mail_keyspace))) == []
    modseqs = cassandra.execute(f"SELECT uid, modseq FROM {mail_keyspace}.imapuidtable")
    assert sum(row.modseq == row.uid + 1 for row in modseqs) == 500
