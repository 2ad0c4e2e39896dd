"""One run: three nodes, users at work, a stream that repairs, faults; then agreement, or not."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import ConstantReconnectionPolicy

from deploy import logins, wake_tables
from deploy.embedded import Stack, Wanted
from deploy.embedded.cql import as_admin
from deploy.embedded.spark_cluster import SparkCluster
from deploy.mailserver.james import create_schema
from deploy.mailserver.workload import Workload, run
from deploy.nemesis.agreement import await_agreement
from deploy.nemesis.disks import small_disks
from deploy.nemesis.history import UserHistory, UserOutcome, UserWrite, read_history
from deploy.nemesis.hosts import in_group, make_hosts
from deploy.nemesis.injector import Injector
from deploy.nemesis.injectors import injectors
from deploy.nemesis.leaders import second_broker
from deploy.nemesis.links import STREAM_GROUP
from deploy.nemesis.plan import RunPlan
from deploy.nemesis.record import RunRecord, violations_by_name
from deploy.nemesis.schedule import FaultChoice, InjectedFault, PlannedFault
from deploy.nemesis.session import RecordedSession
from deploy.nemesis.stream import StreamProcess
from deploy.nemesis.verdict import Judgement

log = logging.getLogger(__name__)

COPIES = 3
KEEP_DELETES = "ALTER TABLE {}.mailboxrecents WITH gc_grace_seconds = 864000"
"""James has 0 there: rows come back from a node that was down when they were deleted, by nobody."""
USERS_TIMEOUT_S = 4.0
JUDGES_TIMEOUT_S = 120.0
HEARTBEAT_S = 2.0
"""A node that is silent for so long is not asked by users any more."""
OPERATIONS = ("imapuidtable", "eventstore", "mailbox")
"""Each operation of a mail server writes to one of them."""


def play(plan: RunPlan, folder: Path) -> tuple[RunRecord, Judgement]:
    """Make one run in an empty folder, which has its logs and its history after.

    Raises EmbeddedError where servers do not start or come back, the driver's error where the
    tables cannot be read.
    """
    at, login = datetime.now(UTC), logins.login(folder) if plan.secure else {}
    with of_hosts(plan, folder / "stack") as stack, connected(stack, JUDGES_TIMEOUT_S) as judge:
        log.info("three nodes and their agents run: making James's tables")
        make_tables(plan, stack, judge)
        with (
            nullcontext() if plan.secure else second_broker(stack, folder / "broker-2") as broker,
            spark_cluster(plan, folder / "spark") as spark,
            StreamProcess(stack.config, folder, plan.delay_s, spark, login) as stream,
        ):
            stream.await_watching()
            possible = injectors(stack, stream, broker, plan)
            with users_at_work(stack, plan.workload(), folder / "history.jsonl"):
                log.info("users are at work")
                injected = inject(plan.faults(list(possible)), possible)
            log.info("the users are done, and all is healed")
            history = history_of(folder / "history.jsonl")
            agreed = await_agreement(stack, stream, judge, history, injected, plan.shift_s)
            stream.stop()
    record = RunRecord(
        seed=plan.seed,
        release=plan.releases,
        at=at.isoformat(timespec="seconds"),
        operations=acknowledged(history, OPERATIONS),
        rows=acknowledged(history),
        faults={kind.value: number for kind, number in injected.items()},
        violations=violations_by_name(agreed.judgement),
        weakened=agreed.judgement.weakened,
        convergence_s=agreed.after_s,
        copies=COPIES,
        left=len(agreed.judgement.left),
        delay_s=plan.delay_s,
        on_executors=plan.on_executors,
        secure=plan.secure,
    )
    return record, agreed.judgement


def make_tables(plan: RunPlan, stack: Stack, admin: Session) -> None:
    """James's tables, whose changes are captured, and the rights on them. Raises as `play` does."""
    with stack.unsupervised():
        create_schema(admin, stack.keyspace, COPIES)
        admin.execute(KEEP_DELETES.format(stack.keyspace))
        if plan.secure:
            logins.prepare(stack, admin)
    stack.capture_tables()


@contextmanager
def spark_cluster(plan: RunPlan, folder: Path) -> Iterator[SparkCluster | None]:
    """The cluster of a run on executors, as it were on the stream's host; None of another run."""
    if not plan.on_executors:
        yield None
        return
    cluster = SparkCluster(folder)
    cluster.precede(in_group(STREAM_GROUP))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def of_hosts(plan: RunPlan, folder: Path) -> Iterator[Stack]:
    """A stack that is up, whose processes have what hosts have. Raises EmbeddedError."""
    wanted = Wanted(
        tables=wake_tables.TABLES,
        schema=wake_tables.SCHEMA,
        release=plan.release,
        data_centres=(COPIES,),
        secure=plan.secure or None,
    )
    stack = Stack(folder, wanted)
    make_hosts(stack)
    with small_disks(stack), stack:
        yield stack


@contextmanager
def connected(stack: Stack, timeout_s: float) -> Iterator[Session]:
    """A session at all nodes, which connects again a second after a node is back."""
    cluster = Cluster(
        [node.place.host for node in stack.nodes],
        port=stack.cassandra_port,
        **as_admin(stack.spec),
        execution_profiles={EXEC_PROFILE_DEFAULT: ExecutionProfile(request_timeout=timeout_s)},
        reconnection_policy=ConstantReconnectionPolicy(1.0, max_attempts=None),
        idle_heartbeat_interval=HEARTBEAT_S,
        idle_heartbeat_timeout=HEARTBEAT_S,
        connect_timeout=timeout_s,
        control_connection_timeout=timeout_s,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@contextmanager
def users_at_work(stack: Stack, workload: Workload, path: Path) -> Iterator[None]:
    """Users work beside the block, and each of their writes goes to a history at `path`.

    After the block they go on to the end of their operations. An error in the block ends them.
    """
    stop, history = threading.Event(), UserHistory(path)
    with connected(stack, USERS_TIMEOUT_S) as session, ThreadPoolExecutor(1) as pool:
        recorded = RecordedSession(session, history)
        work = pool.submit(run, recorded, stack.keyspace, workload, None, stop)
        try:
            yield
            work.result()
        finally:
            stop.set()
    history.close()


def inject(
    faults: Sequence[PlannedFault], possible: Mapping[FaultChoice, Injector]
) -> Counter[InjectedFault]:
    """Inject and heal all of them, round after round; how many of each kind there were.

    A round begins at its time, or when all of the one before is healed. Raises what an injector
    raises.
    """
    by_place = {(each.kind, each.target): injector for each, injector in possible.items()}
    began, done = time.monotonic(), Counter[InjectedFault]()
    for _, several in groupby(faults, attrgetter("round")):
        planned = list(several)
        begins_at = max(began + planned[0].at_s, time.monotonic())
        with ThreadPoolExecutor(len(planned)) as pool:
            running = [
                pool.submit(
                    endure,
                    each,
                    by_place[each.kind, each.target],
                    begins_at + each.at_s - planned[0].at_s,
                )
                for each in planned
            ]
        for each in running:
            each.result()
        done.update(each.kind for each in planned)
    return done


def endure(fault: PlannedFault, injector: Injector, at: float) -> None:
    """One fault, from its time (monotonic) until it is healed."""
    time.sleep(max(0.0, at - time.monotonic()))
    log.info("%s: %s, for %.0f s", fault.kind, fault.target, fault.for_s)
    injector.inject()
    time.sleep(fault.for_s)
    injector.heal()
    log.info("healed: %s: %s", fault.kind, fault.target)


def history_of(path: Path) -> list[UserWrite]:
    """What users wrote."""
    with path.open(encoding="utf-8") as lines:
        return read_history(lines)


def acknowledged(history: Sequence[UserWrite], tables: Sequence[str] = ()) -> int:
    """How many writes were acknowledged, of all tables or of some."""
    return sum(
        each.answer.outcome is UserOutcome.OK
        for each in history
        if not tables or each.statement.table in tables
    )
