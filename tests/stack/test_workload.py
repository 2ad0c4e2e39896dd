"""The mail workload on a real Cassandra, without a reconciler: it leaves what its ledger says."""

import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from deploy.demo.compare import Difference, DifferenceKind
from deploy.demo.faults import FaultKind
from deploy.demo.filler import fill, touch
from deploy.demo.full_comparison import full_comparison
from deploy.demo.james import create_schema
from deploy.demo.ledger import HEALED, VERIFIED, Ledger, held_rows
from deploy.demo.planted import plant_repaired, plant_reported
from deploy.demo.planter import Planter
from deploy.demo.workload import Workload, run

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def mail_tables(cassandra: Session) -> Iterator[str]:
    """One keyspace for all tests here, change capture off: nobody listens."""
    keyspace = f"workload_{uuid.uuid4().hex[:12]}"
    create_schema(cassandra, keyspace)
    yield keyspace
    cassandra.execute(f"DROP KEYSPACE {keyspace}", timeout=120)


@pytest.fixture
def mail_keyspace(cassandra: Session, mail_tables: str) -> str:
    """The same keyspace, its two message tables empty."""
    for table in ("imapuidtable", "messageidtable"):
        cassandra.execute(f"TRUNCATE {mail_tables}.{table}", timeout=60)
    return mail_tables


def found(session: Session, keyspace: str) -> list[Difference]:
    return list(full_comparison(session, keyspace))


def test_a_workload_without_faults_leaves_no_difference(
    cassandra: Session, mail_keyspace: str
) -> None:
    ledger = run(cassandra, mail_keyspace, Workload(operations=300, rate=1000.0))
    assert found(cassandra, mail_keyspace) == []
    assert ledger.entries() == []
    messages = cassandra.execute(f"SELECT count(*) FROM {mail_keyspace}.messageidtable").one()
    assert messages.count > 50


def test_clients_with_clocks_apart_leave_no_difference(
    cassandra: Session, mail_keyspace: str
) -> None:
    workload = Workload(operations=200, rate=1000.0, clock_offsets_ms=(-300, 0, 0, 300))
    run(cassandra, mail_keyspace, workload)
    assert found(cassandra, mail_keyspace) == []


@pytest.mark.parametrize("kind", FaultKind)
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
    assert {difference.row for difference in found(cassandra, mail_keyspace)} == (
        ledger.differing_rows()
    )
    unhealed = {row for entry in entries if HEALED not in entry.accepts for row in entry.rows}
    assert unhealed == ledger.differing_rows()
    if kind in {FaultKind.APPLIED_BUT_TIMED_OUT, FaultKind.LATE}:
        assert unhealed == set()
    elif kind is not FaultKind.LATE_RETRIED:
        assert len(unhealed) > 10


def test_the_planted_oddities_are_there_to_be_found(cassandra: Session, mail_keyspace: str) -> None:
    ledger = Ledger()
    planter = Planter(cassandra, mail_keyspace, ledger)
    plant_reported(planter)
    plant_repaired(planter)
    entries = ledger.entries()
    differences = {d.row: d for d in found(cassandra, mail_keyspace)}
    assert differences.keys() == {row for entry in entries for row in entry.rows}
    kinds = {entry.kind: differences[entry.rows[0]].kind for entry in entries}
    assert kinds.pop("incomplete_truth_row") == DifferenceKind.INCOMPLETE_TRUTH
    assert kinds.pop("duplicate_uid") == DifferenceKind.DUPLICATE_UID
    assert kinds.pop("shadowed_delete") == DifferenceKind.MISSING
    assert kinds.pop("ambiguous_range_delete") == DifferenceKind.EXTRA
    assert kinds.pop("missing_row") == DifferenceKind.MISSING
    assert kinds.pop("wrong_uid") == DifferenceKind.MISSING
    assert kinds.pop("partial_row_of_deleted") == DifferenceKind.EXTRA
    assert set(kinds.values()) == {DifferenceKind.CELLS}
    reported = [entry for entry in entries if entry.accepts != (VERIFIED,)]
    assert len(reported) == len(held_rows(entries)) == 5


def test_filled_and_touched_rows_are_consistent(cassandra: Session, mail_keyspace: str) -> None:
    mailboxes = fill(cassandra, mail_keyspace, messages=2_000, mailboxes=7)
    assert len(mailboxes) == 7
    assert touch(cassandra, mail_keyspace, rows=500) == 500
    assert found(cassandra, mail_keyspace) == []
    modseqs = cassandra.execute(f"SELECT uid, modseq FROM {mail_keyspace}.imapuidtable")
    assert sum(row.modseq == row.uid + 1 for row in modseqs) == 500
