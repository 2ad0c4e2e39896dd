"""``reconcile sweep``: compares every row, whether or not an event has named it.

It compares the families one after another, and writes nothing to James's tables. It hands suspects
over to the stream. If none runs they wait, or the command runs one until they are settled
(``--settle``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from checkpoints.lease import Holder
from reconcilers.declared.family import Family, keeping
from reconcilers.words.errors import AlreadyRunning, Misconfigured
from reconcilers.words.names import did_you_mean
from streaming.again.progress import CountedProgress, ShownProgress
from streaming.again.sweep import Interrupted
from streaming.again.workers import beside_a_stream, on_all_cores
from streaming.commands.again.asked_sweeps import TO_GO_ON, AskedSweeps, to_begin, to_resume
from streaming.commands.arguments.people import NO_REASON
from streaming.commands.arguments.times import positive
from streaming.commands.running.leases import Alone, clocks_apart
from streaming.commands.running.own_stream import OwnStream, add_settle
from streaming.commands.running.signals import Stop, stopped_by_signals
from streaming.commands.wiring import workers
from streaming.commands.wiring.hand_over import add_mode, hand_over, names_of, wait_unless
from streaming.commands.wiring.sweeper import all_sweeps, lease_of, ranges_of, sweeper
from streaming.monitoring.endpoint import served
from streaming.pipeline.needs import refuse_without_spark
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own
from streaming.topics import Watcher

LOOKS_EVERY = 5.0
"""Seconds between two looks at whether another sweep has ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile sweep [--systems …] [--mode …] [--rate N] [--resume] [--wait]``."""
    add_mode(parser)
    parser.add_argument(
        "--systems",
        metavar="NAME,…",
        help="compare these projections only (the listing is read for each index of messages)",
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
    refuse_without_spark(settings)
    own = open_own(settings)
    families = workers.compared_of(settings, wanted)
    names = names_of(arguments.mode, settings, wanted[0], own.store)
    jobs = [workers.job_of(settings, each, names.suspects_topic) for each in families]
    wait = partial(wait_unless, stop)
    asked, todo = AskedSweeps(arguments, wait, partial(ranges_of, settings)), to_begin(families)
    try:
        skew, busy = clocks_apart(settings.stream), beside_another(arguments, wait)
        alone = Alone(own.store, lease_of(settings), skew, busy)
        with alone, closing(Watcher(settings.kafka)) as watcher:
            if arguments.resume:
                todo = to_resume(all_sweeps(settings, own.store), families)
            sinks = [hand_over(each, names, own.store, watcher, wait) for each in jobs]
            with (
                OwnStream(settings, names, own.store, sinks) as stream,
                measured(settings) as progress,
            ):
                if arguments.settle:
                    stream.begin()
                tasks = beside_a_stream if stream.runs else on_all_cores
                for job, sink in zip(jobs, sinks, strict=True):
                    if job.family.name in todo:
                        with sweeper(job, own.store, sink, progress, wait, tasks) as made:
                            asked.run(made, todo[job.family.name])
                asked.raise_failure()
                ends = stream.finish()
    except Interrupted as stopped:
        raise stop.ended(asked.to_go_on(len(todo))) from stopped
    for line in (line for each in ends for line in each.lines()):
        print(line)
    return int(asked.is_partial or any(each.waits for each in ends))


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


def paced(settings: Settings, rows_per_second: int | None) -> Settings:
    """The settings with this rate, if one is given."""
    if rows_per_second is None:
        return settings
    sweep = settings.sweep.model_copy(update={"rows_per_second": rows_per_second})
    return settings.model_copy(update={"sweep": sweep})


def compared(settings: Settings, systems: str | None) -> list[Family]:
    """The families with projections, limited to the systems to compare.

    Raises `Misconfigured` if a name is unknown.
    """
    families = [each for each in settings.families() if each.projections]
    if systems is None:
        return families
    names, known = [name for name in systems.split(",") if name], _systems(families)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        none_of = f"{', '.join(unknown) or 'nothing'} is none of {', '.join(known)}"
        near = did_you_mean(unknown[0], known) if unknown else ""
        raise Misconfigured(f"--systems: {none_of}{near}")
    return [keeping(each, names) for each in families if not {*names}.isdisjoint(each.names)]


def _systems(families: Iterable[Family]) -> tuple[str, ...]:
    return tuple(name for each in families for name in each.names)
