"""The leases of processes: one stream repairs a keyspace, one process writes canaries."""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Protocol

from checkpoints.cassandra import CassandraLease, Store
from checkpoints.lease import Holder, Lease, LeaseStore
from reconcilers.words.errors import AlreadyRunning, Refused, Retryable
from streaming.commands.running.servers import until_answered
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, StreamSettings

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """The place where a process runs.

    ``host`` is the name that people use. ``own`` identifies the boot of the machine and its
    namespace of process numbers, so no other host or container has it. It is empty if the system
    does not provide these.
    """

    host: str
    own: str


def this_place() -> ProcessPlace:
    """The place of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ProcessPlace(socket.gethostname(), "")
    told = sha256(f"{boot} {numbers}".encode()).hexdigest()
    return ProcessPlace(socket.gethostname(), told[:12])


def this_process() -> Holder:
    """This process as the holder of a lease: host, process number and place."""
    place = this_place()
    return Holder(str(uuid.uuid4()), f"{place.host}:{os.getpid()}@{place.own}")


def end_lease_of_the_dead(store: LeaseStore, name: str) -> None:
    """End the lease of a process that was killed on this host.

    Other hosts and containers may have the same name, so only a process of the same place is
    judged. Any other lease ends when its time is over.
    """
    holder = store.held_by(name)
    if holder is None:
        return
    who, _, own = holder.host.rpartition("@")
    number = who.rpartition(":")[2]
    if not own or own != this_place().own or not number.isdigit():
        return
    if int(number) == os.getpid() or not _alive(int(number)):
        log.warning("taking over from process %s of this host, which is gone", number)
        store.leave(name, holder)


def clocks_apart(stream: StreamSettings) -> timedelta:
    """How far the clocks of two nodes may differ: repairs pause from D/2 from ours on."""
    return timedelta(seconds=stream.delay)


def lease_that_bears(skew: timedelta, store: LeaseStore, name: str) -> Lease:
    """A lease of this process that stays exclusive if nodes' clocks differ by ``skew``."""
    return Lease(store, name, this_process(), skew=skew)


class Waiter(Protocol):
    """Waits while another process holds a lease; see `standby.StandBy`."""

    def wait(self, holder: Holder | None) -> None:
        """Wait for the next attempt; ``holder`` has the lease, if it is known."""

    def end(self) -> None:
        """Wait no longer."""


class Holding:
    """Holds the lease while the stream runs; observe mode needs none (a context manager).

    ``waiter`` waits while another stream holds it; without one that is refused.
    """

    def __init__(
        self,
        names: StreamNames,
        store: Store,
        threads: Threads,
        skew: timedelta,
        waiter: Waiter | None = None,
    ) -> None:
        self._threads, self._waiter = threads, waiter
        self._over = Event()
        self._name = names.lease
        self._store = CassandraLease(store)
        self._lease: Lease | None = None
        if names.mode is Mode.REPAIR:
            self._lease = lease_that_bears(skew, self._store, self._name)

    def __enter__(self) -> Lease | None:
        """Acquire, and renew in a thread. Raises `AlreadyRunning`, and as ``waiter`` does."""
        if self._lease is not None:
            self._acquire(self._lease)
            keep, health = self._lease.keep, self._threads.health
            self._threads.start(
                "lease", lambda _: keep(health.watched("lease", self._over), health.dead)
            )
        return self._lease

    def _acquire(self, lease: Lease) -> None:
        while True:
            try:
                until_answered(self._threads, partial(self._take, lease))
            except AlreadyRunning:
                if self._waiter is None:
                    raise
                held_by = partial(self._store.held_by, self._name)
                self._waiter.wait(until_answered(self._threads, held_by))
            else:
                if self._waiter is not None:
                    self._waiter.end()
                return

    def _take(self, lease: Lease) -> None:
        end_lease_of_the_dead(self._store, self._name)
        lease.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop all threads, then release the lease, so that the next stream starts at once."""
        self._threads.stop.set()
        self._over.set()
        if self._lease is not None and kind is not AlreadyRunning:
            let_go(self._lease)


class Alone:
    """Holds a lease during a command that must not run twice at a time (a context manager).

    ``busy`` is called with the holder while another has the lease. It waits, or raises.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        skew: timedelta,
        busy: Callable[[Holder | None], None] | None = None,
    ) -> None:
        self._store, self._name, self._busy = CassandraLease(store), name, busy
        self._lease, self._over = lease_that_bears(skew, self._store, name), Event()
        self._threads = Threads(self._over)

    def __enter__(self) -> None:
        """Acquire, and renew in a thread. Raises `AlreadyRunning`, and as ``busy`` does."""
        while True:
            end_lease_of_the_dead(self._store, self._name)
            try:
                self._lease.acquire()
                break
            except AlreadyRunning:
                if self._busy is None:
                    raise
                self._busy(self._store.held_by(self._name))
        self._threads.start("lease", self._lease.keep)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the lease.

        If the lease was lost, another command may have started: raises why, unless the command
        fails with an error of its own.
        """
        self._over.set()
        let_go(self._lease)
        if kind is None:
            self._threads.check()


def let_go(lease: Lease) -> None:
    """Release the lease; if that fails, it ends when its time is over."""
    try:
        lease.release()
    except (Retryable, Refused) as failed:
        log.warning("the lease was not released, and will expire: %s", failed)


def _alive(pid: int) -> bool:
    """Whether a process of this host with this number runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
