"""The history and the checker of fault-injection runs on a real Cassandra, without a product."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.mailserver.james import create_schema
from deploy.mailserver.rights import RIGHTS_PROJECTIONS
from deploy.mailserver.workload import Workload, run
from deploy.nemesis.checker import check
from deploy.nemesis.final import read_final
from deploy.nemesis.history import UserHistory, UserOutcome, UserWrite, read_history
from deploy.nemesis.session import RecordedSession
from deploy.nemesis.verdict import Judgement, ViolationName

pytestmark = pytest.mark.stack

SKEW_US = 1_000_000
UNLUCKY = Workload(
    operations=150,
    rate=200,
    faults=20,
    index_faults=3,
    counter_faults=3,
    other_faults=dict.fromkeys(RIGHTS_PROJECTIONS, 2),
    late_s=(0.1, 0.5),
)


@pytest.fixture
def keyspace(cassandra: Session) -> Iterator[str]:
    keyspace = f"nemesis_{uuid.uuid4().hex[:12]}"
    create_schema(cassandra, keyspace)
    yield keyspace
    cassandra.execute(f"DROP KEYSPACE {keyspace}")


def worked(session: Session, keyspace: str, workload: Workload, path: Path) -> list[UserWrite]:
    history = UserHistory(path)
    run(RecordedSession(session, history), keyspace, workload)
    history.close()
    with path.open(encoding="utf-8") as lines:
        return read_history(lines)


def judged(session: Session, keyspace: str, history: list[UserWrite]) -> Judgement:
    return check(history, read_final(session, keyspace), SKEW_US)


def test_without_a_product_only_differences_of_the_users_own_remain(
    cassandra: Session, keyspace: str, tmp_path: Path
) -> None:
    history = worked(cassandra, keyspace, UNLUCKY, tmp_path / "history.jsonl")
    assert {write.answer.outcome for write in history} == {UserOutcome.OK}
    assert len(history) > len(INDEX_PROJECTIONS) * UNLUCKY.operations
    judgement = judged(cassandra, keyspace, history)
    strange = [
        each for each in judgement.violations if each.name is not ViolationName.NOT_CONVERGED
    ]
    assert strange == []
    assert judgement.violations
    assert judgement.weakened == 0


def test_what_nobody_but_a_faulty_product_writes_is_seen(
    cassandra: Session, keyspace: str, tmp_path: Path
) -> None:
    history = worked(cassandra, keyspace, Workload(operations=60), tmp_path / "history.jsonl")
    assert judged(cassandra, keyspace, history).violations == []
    first, second, third, *_ = cassandra.execute(f"SELECT * FROM {keyspace}.messageidtable")
    slot = f"mailboxid = {first.mailboxid} AND uid = {first.uid}"
    cassandra.execute(f"DELETE FROM {keyspace}.messageidtable WHERE {slot}")
    slot = f"mailboxid = {second.mailboxid} AND uid = {second.uid}"
    cassandra.execute(f"UPDATE {keyspace}.messageidtable SET modseq = 999 WHERE {slot}")
    row = f"messageid = {third.messageid} AND mailboxid = {third.mailboxid} AND uid = {third.uid}"
    cassandra.execute(
        f"UPDATE {keyspace}.imapuidtable SET userflags = userflags + {{'x'}} WHERE {row}"
    )
    counter = f"{keyspace}.mailboxcounters SET count = count + 1"
    cassandra.execute(f"UPDATE {counter} WHERE mailboxid = {first.mailboxid}")
    found = {(each.name, each.table) for each in judged(cassandra, keyspace, history).violations}
    assert found >= {
        (ViolationName.REMOVED, "messageidtable"),
        (ViolationName.OVERRIDDEN, "messageidtable"),
        (ViolationName.TRUTH_WRITE, "imapuidtable"),
        (ViolationName.DOUBLED, "mailboxcounters"),
    }
