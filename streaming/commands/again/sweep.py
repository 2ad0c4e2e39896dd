"""``reconcile sweep``: compares every row, whether or not an event has named it.

It writes nothing to James's tables. It hands suspects over to the stream. If none runs they wait,
or the command runs one until they are settled (``--settle``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from checkpoints.clock import now_micros, to_seconds
from checkpoints.lease import Holder
from checkpoints.sweeps import SweepRecord, Sweeps
from reconcilers.declared.family import Family, bind, keeping
from reconcilers.words.errors import AlreadyRunning, Misconfigured
from streaming.again.progress import CountedProgress, ShownProgress
from streaming.again.sweep import Interrupted, Sweeper, SweepMark, SweepResult
from streaming.again.workers import MOST_TASKS
from streaming.commands.arguments.names import did_you_mean
from streaming.commands.arguments.people import NO_REASON, who_of
from streaming.commands.arguments.times import positive
from streaming.commands.running.leases import Alone, clocks_apart
from streaming.commands.running.own_stream import OwnStream, add_settle
from streaming.commands.running.signals import Stop, stopped_by_signals
from streaming.commands.wiring import workers
from streaming.commands.wiring.hand_over import add_mode, hand_over, names_of, wait_unless
from streaming.commands.wiring.sweeper import BESIDE_A_STREAM, lease_of, sweeper, told_of
from streaming.monitoring.metrics import served
from streaming.pipeline.needs import refuse_without_spark
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from streaming.tables.own_keyspace import open_own
from streaming.topics import Watcher

TO_GO_ON = "`reconcile sweep --resume` continues what it has begun"
LOOKS_EVERY = 5.0
"""Seconds between two looks at whether another sweep has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile sweep [--systems …] [--mode …] [--rate N] [--resume] [--wait]``."""
    add_mode(parser)
    parser.add_argument(
        "--systems",
        metavar="NAME,…",
        help="compare these projections only (messages are read for each of them)",
    )
    parser.add_argument("--rate", type=positive, metavar="ROWS", help="most rows read per second")
    parser.add_argument("--resume", action="store_true", help="go on with the one that was ended")
    parser.add_argument("--wait", action="store_true", help="begin when a running sweep has ended")
    add_settle(parser)
    parser.add_argument("--reason", default=NO_REASON, metavar="TEXT", help="kept")
    parser.add_argument("--who", metavar="NAME", help="kept (your user name)")
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Sweep; 0 if all was read and settled and lineage is whole, else 1."""
    stop = stopped_by_signals()
    with stop.first(TO_GO_ON):
        return _run(settings, arguments, stop)


def _run(settings: Settings, arguments: argparse.Namespace, stop: Stop) -> int:
    settings = paced(settings, arguments.rate)
    wanted = compared(settings, arguments.systems)
    refuse_without_spark(settings.stream)
    own = open_own(settings)
    family = bind(wanted, schema_of(connect(settings.cassandra), settings.cassandra.keyspace))
    names = names_of(arguments.mode, settings, family, own.store)
    job = workers.job(settings, family, names.suspects_topic)
    wait = partial(wait_unless, stop)
    record: SweepRecord | None = None
    found: SweepResult | None = None
    try:
        skew, busy = clocks_apart(settings.stream), beside_another(arguments, wait)
        alone = Alone(own.store, lease_of(settings), skew, busy)
        with alone, closing(Watcher(settings.kafka)) as watcher:
            sink = hand_over(job, names, own.store, watcher, wait)
            with (
                OwnStream(settings, names, own.store, sink) as stream,
                measured(settings) as progress,
            ):
                if arguments.settle:
                    stream.begin()
                tasks = BESIDE_A_STREAM if stream.runs else MOST_TASKS
                with sweeper(job, own.store, sink, progress, wait, tasks) as made:
                    if not arguments.resume:
                        wait_until_it_counts(made.mark, wait)
                    record = record_of(settings, arguments, made, family)
                    found = made.run(record)
                end = stream.finish()
    except Interrupted as stopped:
        then = TO_GO_ON
        if record is None:
            then = "nothing was compared"
        elif found is not None:
            print("\n".join(told_of(found)))
            then = "what was found waits for the stream"
        raise stop.ended(then) from stopped
    print("\n".join([*told_of(found), *end.lines()]))
    return int(bool(end.waits or found.unread or found.memory is not None))


@contextmanager
def measured(settings: Settings) -> Iterator[CountedProgress]:
    """The progress for a person, with the metrics of a sweep for Prometheus."""
    metrics = served(settings.metrics, "sweep_port", settings.cassandra.keyspace, "sweep")
    with ShownProgress() as shown:
        yield CountedProgress(shown, metrics.sweep_rows)


def beside_another(
    arguments: argparse.Namespace, wait: Callable[[float], None]
) -> Callable[[Holder | None], None]:
    """What to do while another sweep runs: with ``--wait`` print a line, and wait until it ends.

    Raises `AlreadyRunning` without ``--wait``.
    """
    printed = list[str]()

    def busy(holder: Holder | None) -> None:
        runs = f"another sweep runs ({'its host is unknown' if holder is None else holder.host})"
        if not arguments.wait:
            raise AlreadyRunning(
                f"{runs}: wait for it with --wait, or follow it with `reconcile status`"
            )
        if not printed:
            printed.append(f"{runs}: waiting for its end; `reconcile status` shows how far it is")
            print(*printed, file=sys.stderr)
        wait(LOOKS_EVERY)

    return busy


def wait_until_it_counts(mark: SweepMark, wait: Callable[[float], None]) -> None:
    """Wait after a loss: a sweep that begins too soon would not make lineage whole.

    If a clock is wrong it does not wait; the result says so.
    """
    watching = mark.lineage.watching()
    early = 0 if watching is None else watching.sweeps_count_from(mark.delay) - now_micros()
    if 0 < early <= mark.delay:
        wait(to_seconds(early))


def paced(settings: Settings, rows_per_second: int | None) -> Settings:
    """The settings with this rate, if one is given."""
    if rows_per_second is None:
        return settings
    sweep = settings.sweep.model_copy(update={"rows_per_second": rows_per_second})
    return settings.model_copy(update={"sweep": sweep})


def compared(settings: Settings, systems: str | None) -> Family:
    """The family with projections, limited to the systems to compare.

    Raises `Misconfigured` if a name is unknown.
    """
    family = settings.families()[0]
    if systems is not None:
        names = [name for name in systems.split(",") if name]
        unknown = [name for name in names if name not in family.names]
        if unknown or not names:
            none_of = f"{', '.join(unknown) or 'nothing'} is none of {', '.join(family.names)}"
            near = did_you_mean(unknown[0], family.names) if unknown else ""
            raise Misconfigured(f"--systems: {none_of}{near}")
        indexes = [each for each in family.projections[1:] if each.name in names]
        family = keeping(family, [each.name for each in indexes])
    return family


def record_of(
    settings: Settings, arguments: argparse.Namespace, made: Sweeper, family: Family
) -> SweepRecord:
    """A new sweep, or with ``--resume`` the last one that has not ended."""
    if arguments.resume:
        left = left_of(made.sweeps, family)
        why = made.mark.refused(left)
        if why is not None:
            print(f"it will not make lineage complete: {why}", file=sys.stderr)
        return left
    who, ranges = who_of(arguments), settings.sweep.ranges
    record = SweepRecord(now_micros(), who, arguments.reason, family.names, ranges)
    made.sweeps.begin(record)
    return record


def left_of(sweeps: Sweeps, family: Family) -> SweepRecord:
    """The last sweep that has not ended. Raises `Misconfigured` without one of these systems."""
    left = [each for each in sweeps.all() if each.ended_at is None]
    if not left:
        raise Misconfigured("no sweep is left to go on with: begin one without --resume")
    if left[0].systems != family.names:
        compared = ",".join(left[0].systems)
        raise Misconfigured(f"the sweep that is left compares --systems {compared}")
    return left[0]
