"""A stream inside a sweep or replay, which settles what that command finds."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from functools import partial
from threading import Event, Thread

from checkpoints.cassandra import CassandraLease, Store
from reconcilers.words.errors import EndedItself
from streaming.again.hand_over import Closing, HandOver
from streaming.commands.running.leases import end_lease_of_the_dead
from streaming.commands.running.stream import run_stream
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Settings

log = logging.getLogger("reconciler")

LOOK_EVERY = 1.0
"""Seconds between two looks at whether it runs."""


def add_settle(parser: argparse.ArgumentParser) -> None:
    """Add ``--settle`` to a command that hands suspects over."""
    parser.add_argument(
        "--settle",
        action="store_true",
        help="where no stream runs in this mode, run one until what differs is settled",
    )


class OwnStream:
    """Runs `reconcile stream` in threads of this process (a context manager).

    Each of ``sinks``, one for each family, finds out whether its stream runs, waits, and raises if
    the command is to end. Log lines of this stream below a warning are not shown.
    """

    def __init__(
        self, settings: Settings, names: StreamNames, store: Store, sinks: Sequence[HandOver]
    ) -> None:
        never = settings.sweep.model_copy(update={"when_needed": False, "every_days": 0})
        anywhere = settings.metrics.model_copy(update={"port": 0})  # one of the other mode may run
        self._settings = settings.model_copy(update={"sweep": never, "metrics": anywhere})
        self._names, self._store = names, store
        self._sinks = sinks
        self._threads = Threads(Event())
        self._thread: Thread | None = None
        self._level = log.level

    @property
    def runs(self) -> bool:
        """Whether a stream was started here."""
        return self._thread is not None

    def begin(self) -> None:
        """Start a stream unless one runs, and wait until it does. Raises the error that ends it."""
        end_lease_of_the_dead(CassandraLease(self._store), self._names.lease)
        if any(each.stream.running() for each in self._sinks):
            return
        log.setLevel(logging.WARNING)
        run = partial(run_stream, self._settings, self._names.mode)
        self._thread = self._threads.start("stream", run)
        self._until_it_runs(self._thread)
        for each in self._sinks:
            each.settled_by(self._thread.is_alive)  # however long nothing is settled by it

    def finish(self) -> list[Closing]:
        """What became of all that was handed over. A stream that was started here ends after."""
        for each in self._sinks if self.runs else ():
            each.until_verified()
        return [each.finish() for each in self._sinks]

    def __enter__(self) -> OwnStream:
        """Starts nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the stream as SIGTERM does."""
        self._threads.stop.set()
        if self._thread is not None:
            self._thread.join()
        log.setLevel(self._level)

    def _until_it_runs(self, thread: Thread) -> None:
        for each in self._sinks:
            while not each.stream.running():
                if not thread.is_alive():
                    raise self._threads.failed or EndedItself("the stream that was begun has ended")
                each.wait(LOOK_EVERY)
