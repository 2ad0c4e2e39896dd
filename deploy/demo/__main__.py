"""The main job on real servers, from nothing: `make demo`.

    python -m deploy.demo [--seed N] [--operations N] [--keep | --spark-cluster | --secure]

Starts Cassandra, Kafka, the change agent and the reconciler in a temporary folder, lets users work
and statements fail, and judges the outcome. Exits with 0 where exactly the planted differences
remain and each fault ended well, with 1 where not, with 2 where the demo could not be played, and
with 130 when it was interrupted. In every case no process is left behind (but for --keep).
"""

import argparse
import logging
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from deploy import logins, wake_tables
from deploy.demo.pace import pace_of
from deploy.demo.planter import OLDER_ATTACHMENTS
from deploy.demo.play import REPORT, Play, TooSlowError
from deploy.demo.show import Screen, screen_for
from deploy.demo.stream import Stream, StreamDiedError
from deploy.demo.summary import summary
from deploy.demo.verdict import judged
from deploy.embedded import Stack, Wanted
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.settings_file import Sections
from deploy.embedded.spark_cluster import SparkCluster
from deploy.mailserver.attachments import REFERENCES
from deploy.mailserver.faults import FaultKind
from deploy.mailserver.rights import USER_RIGHTS
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.mailserver.workload import Workload
from reconcilers.words.errors import ReconcilerError

FINE, NOT_AS_IT_SHOULD_BE, COULD_NOT_PLAY, INTERRUPTED = 0, 1, 2, 130
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OPERATIONS = 800
RATE = 30.0
"""Operations a second, over all workers."""
FEWEST_OPERATIONS = 300
FEWEST_FAULTS = 100
FAULTS_PER_OPERATION = 0.15
ELSEWHERE = 0.1
"""Of these so many again strike each index and counter table, rights of users, and references."""
SHIPPED = ("reconcilers", "checkpoints", "streaming")
"""What executors get of the project."""
FAILURES = (EmbeddedError, StreamDiedError, TooSlowError, ReconcilerError, *SERVER_TROUBLE)


def main(arguments: list[str]) -> int:
    """Play it. Returns the exit code."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.CRITICAL)
    for number in INTERRUPTS:
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="james-demo-"))
    screen = screen_for(sys.stdout)
    try:
        code = _play(given, folder, screen)
    except FAILURES as failure:
        screen.say(f"the demo could not be played: {failure}")
        code = COULD_NOT_PLAY
    except KeyboardInterrupt:
        screen.say("interrupted: everything is stopped")
        code = INTERRUPTED
    _leave(given, folder, screen, code)
    return code


def workload_of(operations: int, seed: int) -> Workload:
    """The workload of the demo: at least 100 faults, over all tables and kinds."""
    faults = max(FEWEST_FAULTS, round(operations * FAULTS_PER_OPERATION))
    elsewhere = round(faults * ELSEWHERE)
    return Workload(
        operations=operations,
        rate=RATE,
        seed=seed,
        faults=faults,
        index_faults=elsewhere,
        counter_faults=elsewhere,
        other_faults={USER_RIGHTS: elsewhere, REFERENCES: elsewhere},
        other_fault_kinds=(FaultKind.NOT_SENT, FaultKind.APPLIED_BUT_TIMED_OUT),
        variant=OLDER_ATTACHMENTS,
    )


def _play(given: argparse.Namespace, folder: Path, screen: Screen) -> int:
    with _cluster(given, folder, screen) as spark, ExitStack() as ending:
        screen.say(f"starting Cassandra, Kafka and the change agent in {folder}")
        wanted = Wanted(
            tables=wake_tables.TABLES, schema=wake_tables.SCHEMA, secure=given.secure or None
        )
        stack = Stack(folder / "stack", wanted)
        ending.callback(stack.down)
        ending.callback(screen.say, "stopping the servers")
        ending.callback(_ignore_interrupts)
        began = time.monotonic()
        stack.up()
        pace = pace_of(time.monotonic() - began)
        screen.say(f"the servers run; the reconciler's delay is {pace.delay:.0f} s on this machine")
        more = logins.login(folder) if given.secure else spark
        stream = Stream(stack.config, folder, pace, more)
        play = Play(workload_of(given.operations, given.seed), folder, screen, pace)
        evidence = play.run(stack, stream, ending)
        verdict = judged(evidence)
        if given.keep:
            ending.pop_all()
    print(*("", *summary(evidence, verdict)), sep="\n")
    print("", f"the report: {REPORT}", *(_kept(folder, stream) if given.keep else ()), sep="\n")
    sys.stdout.flush()
    return FINE if verdict.fine else NOT_AS_IT_SHOULD_BE


def _kept(folder: Path, stream: Stream) -> Iterator[str]:
    """Where to look at what runs on, and how to end it."""
    yield f"the page: {stream.page}"
    yield "the reconciler and the servers run on. Look with:"
    yield f"  {sys.executable} -m streaming.app findings --config {folder}/demo.toml"
    yield f"  {sys.executable} -m streaming.app status --config {folder}/demo.toml"
    yield "stop them with:"
    yield f"  kill {stream.pid}"
    yield f"  {sys.executable} -m deploy.embedded down --data-dir {folder}/stack"


@contextmanager
def _cluster(given: argparse.Namespace, folder: Path, screen: Screen) -> Iterator[Sections]:
    """The settings of a Spark cluster that is up inside; none where none is wanted."""
    if not given.spark_cluster:
        yield {}
        return
    screen.say("starting a Spark master and two workers, whose Python does not have the project")
    cluster = SparkCluster(folder / "spark", applications=2)
    try:
        cluster.start()
        yield cluster.settings_for(SHIPPED)
    finally:
        _ignore_interrupts()
        cluster.stop()


def _leave(given: argparse.Namespace, folder: Path, screen: Screen, code: int) -> None:
    """Remove the folder, unless somebody may want to look into it."""
    if given.keep and code in (FINE, NOT_AS_IT_SHOULD_BE):
        return
    if code in (FINE, INTERRUPTED):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        screen.say(f"settings, logs and ledger stay in {folder}")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Once: what ends the processes must not be interrupted itself."""
    _ignore_interrupts()
    raise KeyboardInterrupt


def _ignore_interrupts() -> None:
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


def _operations(text: str) -> int:
    number = int(text)
    if number < FEWEST_OPERATIONS:
        raise argparse.ArgumentTypeError(
            f"at least {FEWEST_OPERATIONS}, for {FEWEST_FAULTS} faults"
        )
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.demo", description="The main job on real servers, from nothing."
    )
    parser.add_argument("--seed", type=int, default=1, help="of operations and faults (default 1)")
    parser.add_argument(
        "--operations", type=_operations, default=OPERATIONS, help=f"default {OPERATIONS}"
    )
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--spark-cluster",
        action="store_true",
        help="run the stream and its sweep on a Spark cluster, which ends with them",
    )
    ends.add_argument(
        "--secure", action="store_true", help="with TLS, logins and rights at Cassandra and Kafka"
    )
    ends.add_argument(
        "--keep", action="store_true", help="leave the reconciler, its page and the servers running"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
