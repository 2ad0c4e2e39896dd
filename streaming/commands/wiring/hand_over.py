"""Hands suspects over to the stream of these settings, and finds out whether one runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from functools import partial
from threading import Event

from checkpoints.bookmarks import Bookmark, Bookmarks, Positions, flat
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraFailingSlices,
    CassandraLease,
    Store,
)
from checkpoints.clock import now_micros, to_micros, to_seconds
from checkpoints.failing_slices import FailingSlices
from reconcilers.declared.family import Family
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Micros, ProjectionSlot
from streaming.again.hand_over import HandOver, LiveStream, SuspectPace
from streaming.again.sweep import Interrupted
from streaming.commands.wiring.stream_names import StreamNames
from streaming.commands.wiring.unsettled_events import unsettled
from streaming.pipeline.behind import judged_within
from streaming.pipeline.worker import Job
from streaming.settings import Mode, Settings
from streaming.topics import Watcher, projection_of, suspect_key

SILENT = 180.0
"""Seconds, or six delays: a stream that observes settles something so often; it has no lease."""

Running = Callable[[], bool]


def hand_over(
    job: Job, names: StreamNames, store: Store, watcher: Watcher, wait: Callable[[float], None]
) -> HandOver:
    """Hands over to the stream in this mode, whether it runs or not."""
    bookmarks, name, repair = CassandraBookmarks(store), names.bookmarks(job.family), _half(job)
    stream = LiveStream(
        topic=names.suspects_topic,
        publish=job.publish,
        ends=partial(_ends, watcher, names.suspects_topic),
        settled=partial(bookmarks.newest, name),
        running=_running(job.settings, names, store, name),
        waiting=partial(waiting, watcher, names.suspects_topic, partial(bookmarks.newest, name)),
        judged_within=to_seconds(judged_within(job.settings)),
    )
    journal = job.connections().journal
    return HandOver(job.family, stream, journal, repair, wait, now_micros)


def wait_unless(stop: Event, seconds: float) -> None:
    """Wait for some seconds. Raises `Interrupted` if ``stop`` is set."""
    if stop.wait(seconds):
        raise Interrupted


def _half(job: Job) -> SuspectPace:
    repair = job.settings.repair
    return SuspectPace(repair.suspects_per_minute, repair.removals_per_minute)


def _ends(watcher: Watcher, topic: str) -> Positions:
    return flat(watcher.end_offsets([topic]))


def waiting(
    watcher: Watcher,
    topic: str,
    newest: Callable[[], Bookmark | None],
    places: Collection[ProjectionSlot],
) -> set[ProjectionSlot]:
    """The places whose suspects are in the topic and not settled yet."""
    wanted: dict[tuple[str, bytes | None], ProjectionSlot] = {
        (name, suspect_key(slot.key)): (name, slot) for name, slot in places
    }
    names = {name for name, _ in places}
    found: set[ProjectionSlot] = set()
    for place, (begin, end) in unsettled(watcher, [topic], newest()).items():
        for record in watcher.records(*place, begin, end):
            named = projection_of(record)
            keys = ((name, record.key) for name in (names if named is None else (named,)))
            found.update(wanted[each] for each in keys if each in wanted)
    return found


def names_of(asked: str | None, settings: Settings, family: Family, store: Store) -> StreamNames:
    """The names of the stream in the mode that is asked for, or else of the one that runs.

    Raises `Misconfigured` if no mode is asked for, and none or both run.
    """

    def runs(mode: Mode) -> bool:
        names = StreamNames.of(settings, mode)
        return _running(settings, names, store, names.bookmarks(family))()

    return StreamNames.of(settings, mode_of(asked, runs))


def mode_of(asked: str | None, runs: Callable[[Mode], bool]) -> Mode:
    """The mode that is asked for, or else the only one whose stream ``runs``."""
    if asked is not None:
        return Mode(asked)
    running = [each for each in Mode if runs(each)]
    if len(running) != 1:
        why = "a stream of each mode runs" if running else "no stream runs"
        modes = " or ".join(f"--mode {each}" for each in Mode)
        raise Misconfigured(f"{why}: say which one gets what is found, {modes}")
    return running[0]


def add_mode(parser: argparse.ArgumentParser) -> None:
    """Add ``--mode`` to a command that hands suspects over."""
    parser.add_argument(
        "--mode",
        choices=[each.value for each in Mode],
        help="of the stream that gets what is found (the one that runs)",
    )


def _running(settings: Settings, names: StreamNames, store: Store, name: str) -> Running:
    if names.mode is Mode.REPAIR:
        lease = CassandraLease(store)
        return lambda: lease.held_by(names.lease) is not None
    silent, failing = max(SILENT, 6 * settings.stream.delay), CassandraFailingSlices(store)
    return partial(observes, name, CassandraBookmarks(store), failing, to_micros(silent))


def observes(stream: str, bookmarks: Bookmarks, failing: FailingSlices, silent: Micros) -> bool:
    """Whether the observing stream of this name runs: it holds no lease.

    A stream that ends cleanly removes its entry in ``failing``. A stream that was killed counts as
    running until it has settled nothing for ``silent`` (µs).
    """
    if failing.of(stream) is None:
        return False
    newest = bookmarks.newest(stream)
    return newest is not None and newest.recorded_at > now_micros() - silent
