"""The lease: only one live stream repairs a keyspace. The port and its rules.

It is stored in Cassandra by lightweight transactions with a TTL. It is renewed at a third of its
time. It is trusted for two thirds after the last renewal was *sent*, by a monotonic clock. The
servers end it by their own clocks. Its TTL is therefore longer than the trusted time, by at least
the difference of clocks that repairs allow. A stream that was suspended notices the loss before it
writes, and its writes are guarded anyway.
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
"""The shortest time of a lease."""
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lease: an id that no other process has, and its host."""

    id: str
    host: str


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long its holder trusts a lease, and how long the servers store it."""

    trusted: timedelta
    lives: timedelta

    @classmethod
    def of(cls, lasts: timedelta, skew: timedelta) -> LeaseTimes:
        """Two thirds are trusted; the rest is more than ``skew``, however short the lease."""
        trusted = lasts * 2 / 3
        return cls(trusted, max(lasts, trusted + skew + SECOND))


class LeaseStore(Protocol):
    """Implementations: `checkpoints.cassandra.CassandraLease`, and the fake `MemoryLease`."""

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        """Take the lease if it is free, or renew it for this holder; return the current holder.

        The time is rounded up to whole seconds. Raises `Retryable` if the outcome is unknown; take
        the lease again then.
        """

    def leave(self, name: str, holder: Holder) -> None:
        """End the lease if this holder has it."""

    def held_by(self, name: str) -> Holder | None:
        """The current holder, None if there is none."""


def time_awake_or_asleep() -> float:
    """Monotonic seconds, including time while the machine is suspended if the system counts it."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class Lease:
    """One process's claim. ``clock`` gives monotonic seconds; ``skew`` is between two servers."""

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
        """Half of the trusted time."""
        return self._times.trusted / 2

    def acquire(self) -> None:
        """Take the lease, or renew it.

        Raises `AlreadyRunning`, with the holder's name, if another has it. Raises `Retryable` if no
        server answers; time still decides whether an earlier lease holds.
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
        """Whether no other process can have the lease now. Call it before every repair."""
        if self._renewed_at is None:
            return False
        return self._clock() - self._renewed_at < self._times.trusted.total_seconds()

    def keep(self, stop: Event, dead: Callable[[], str | None] = lambda: None) -> None:
        """Renew until ``stop`` is set or the lease is released; runs in a thread of the caller's.

        A failed renewal is repeated soon, and `holds` stays true while time is left. Nothing is
        renewed while the process is ``dead``, which gives the reason: another one is to take over.
        Raises `AlreadyRunning` if another process has taken the lease.
        """
        often, soon = self.renew_every.total_seconds(), self.renew_every.total_seconds() / 5
        pause = often
        while not stop.wait(pause):
            hung = dead()
            if hung is not None:
                log.error("the lease %s is not renewed: %s", self._name, hung)
                continue
            try:
                with self._asking:
                    if self._released:
                        return
                    self._take()
                pause = often
            except (Retryable, Refused) as error:  # a cluster also refuses what it cannot look up
                log.warning("the lease %s could not be renewed yet: %s", self._name, error)
                pause = soon

    def release(self) -> None:
        """End the lease, so that the next stream need not wait. Raises `Retryable`."""
        with self._asking:
            self._released = True
            self._renewed_at = None
            self._store.leave(self._name, self._holder)
