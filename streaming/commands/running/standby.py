"""A stream that stands by: it waits while another one holds the lease."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta

from checkpoints.cassandra import CassandraLease, Store
from checkpoints.lease import Holder
from reconcilers.words.errors import AlreadyRunning, Refused, Retryable
from streaming.commands.running.leases import lease_that_bears, let_go
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.stream_names import StreamNames

log = logging.getLogger("reconciler")

LOOKS_EVERY = 10.0
"""Seconds between two attempts to take the lease."""


class StandBy:
    """Waits for the lease of a stream, and shows that to `reconcile status` by one of its own.

    Of several that stand by, status shows one.
    """

    def __init__(self, names: StreamNames, store: Store, threads: Threads, skew: timedelta) -> None:
        self._health, self._starting = threads.health, threads.starting
        self._before_waiting = threads.before_waiting
        self._shown = lease_that_bears(skew, CassandraLease(store), names.standby)

    def wait(self, holder: Holder | None) -> None:
        """Wait for the next attempt. Raises `AlreadyRunning` if the process is to stop."""
        self._before_waiting()
        host = "another stream" if holder is None else holder.host
        told = f"it stands by: {host} holds the lease"
        if told != self._health.standing_by:
            log.info("%s", told)
        self._health.standing_by = told
        with suppress(AlreadyRunning, Refused, Retryable):  # it is shown only
            self._shown.acquire()
        if self._starting.wait(LOOKS_EVERY):
            self.end()
            raise AlreadyRunning("another stream still held the lease")

    def end(self) -> None:
        """Stand by no longer."""
        if self._health.standing_by is not None:
            self._health.standing_by = None
            let_go(self._shown)
