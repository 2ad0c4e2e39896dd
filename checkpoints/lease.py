"""The lease: only one live stream repairs a keyspace. The port and its rules.

Kept in Cassandra by lightweight transactions with a TTL. It is renewed at a third of its time, and
trusted for two thirds after the last renewal was *sent*, judged by a clock that only goes up. The
servers end it, each by its own clock: its TTL is longer than it is trusted by at least what their
clocks may differ while repairs go on. A stream that was paused finds out before it writes, and its
writes are guarded anyway.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from threading import Event, Lock
from typing import Protocol

from reconcilers.words.errors import AlreadyRunning, Refused, Retryable

log = logging.getLogger(__name__)

LASTS = timedelta(seconds=60)
"""The least."""
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease: an id that no other process has, and the host to look at."""

    id: str
    host: str


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long its holder trusts a lease, and how long it lives at the servers."""

    trusted: timedelta
    lives: timedelta

    @classmethod
    def of(cls, lasts: timedelta, skew: timedelta) -> LeaseTimes:
        """Two thirds are trusted; the rest is more than ``skew``, however short the lease."""
        trusted = lasts * 2 / 3
        return cls(trusted, max(lasts, trusted + skew + SECOND))


class LeaseStore(Protocol):
    """Implementations: `CassandraLease` in `checkpoints.cassandra`, `MemoryLease`."""

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        """Take the lease if nobody has it, renew it if this holder has: who holds it now.

        Whole seconds; a part of one counts as one. Raises `Retryable` when that is not known;
        taking it again is then right.
        """

    def leave(self, name: str, holder: Holder) -> None:
        """End the lease if this holder has it."""

    def held_by(self, name: str) -> Holder | None:
        """Who holds it now, None when nobody does."""


def time_awake_or_asleep() -> float:
    """Seconds on a clock that only goes up, also while the machine is suspended (where it can)."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class Lease:
    """One process's claim. ``clock`` gives seconds that only go up.

    ``skew`` is what the clocks of two servers may differ by; they tell whole seconds only.
    """

    def __init__(
        self,
        store: LeaseStore,
        name: str,
        holder: Holder,
        lasts: timedelta = LASTS,
        clock: Callable[[], float] = time_awake_or_asleep,
        skew: timedelta = timedelta(0),
    ) -> None:
        self._store = store
        self._name = name
        self._holder = holder
        self._times = LeaseTimes.of(lasts, skew)
        self._clock = clock
        self._renewed_at: float | None = None
        self._asking = Lock()
        self._released = False

    @property
    def renew_every(self) -> timedelta:
        """Half of the time in which it is trusted."""
        return self._times.trusted / 2

    def acquire(self) -> None:
        """Take the lease, or renew it.

        Raises `AlreadyRunning` naming the holder when another has it, `Retryable` when nobody
        answers (what was held until then is still judged by time).
        """
        with self._asking:
            self._released = False
            self._take()

    def _take(self) -> None:
        asked_at = self._clock()
        holder = self._store.take(self._name, self._holder, self._times.lives)
        if holder.id != self._holder.id:
            self._renewed_at = None
            seconds = ceil(self._times.lives.total_seconds())
            raise AlreadyRunning(
                f"another live stream holds the lease {self._name}: {holder.id} on host"
                f" {holder.host}. Stop it, or wait {seconds} s after it died"
            )
        self._renewed_at = asked_at

    def holds(self) -> bool:
        """Whether nobody else can have the lease now. Ask before every repair."""
        if self._renewed_at is None:
            return False
        return self._clock() - self._renewed_at < self._times.trusted.total_seconds()

    def keep(self, stop: Event) -> None:
        """Renew until told to stop, or released; for a thread of the caller's.

        A failed renewal is tried again soon; `holds` says meanwhile whether time is left. Raises
        `AlreadyRunning` when the lease is lost to another.
        """
        often, soon = self.renew_every.total_seconds(), self.renew_every.total_seconds() / 5
        pause = often
        while not stop.wait(pause):
            try:
                with self._asking:
                    if self._released:
                        return
                    self._take()
                pause = often
            except (Retryable, Refused) as error:  # a cluster refuses, too, what it cannot look up
                log.warning("the lease %s could not be renewed yet: %s", self._name, error)
                pause = soon

    def release(self) -> None:
        """A clean stop: the next stream need not wait. Raises `Retryable` when nobody answers."""
        with self._asking:
            self._released = True
            self._renewed_at = None
            self._store.leave(self._name, self._holder)
