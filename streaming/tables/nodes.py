"""The nodes of a cluster: their clocks, which of them are away, which hold hints for others."""

from __future__ import annotations

import time

from cassandra.cluster import Session
from cassandra.pool import Host

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import Refused, Retryable, Unreachable

TRIPS, SHORT_TRIP = 3, 0.1
"""A node's clock is asked for so often at most, until an answer came within so many seconds."""


class Nodes:
    """All nodes that the driver knows of, by address. Each is asked itself."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def members(self) -> set[str]:
        """The addresses of all nodes, also of those that do not answer."""
        return {host.address for host in self._session.cluster.metadata.all_hosts()}

    def ids(self) -> set[str]:
        """The host ids of the same nodes."""
        return {str(host.host_id) for host in self._session.cluster.metadata.all_hosts()}

    def clocks(self) -> dict[str, float]:
        """How far each node's clock is ahead of ours, in seconds, good to some milliseconds.

        Nodes that do not answer are left out. Raises `Unreachable` when none does.
        """
        ahead: dict[str, float] = {}
        away: list[str] = []
        for host in self._session.cluster.metadata.all_hosts():
            try:
                with translated(f"asking {host.address} for its time"):
                    ahead[host.address] = self._clock(host)
            except Retryable as failed:
                away.append(str(failed))
        if away and not ahead:
            raise Unreachable(away[0])
        return ahead

    def _clock(self, host: Host) -> float:
        """Of one node. What is measured is wrong by half of the round trip: the shortest counts."""
        query = "SELECT toUnixTimestamp(now()) AS now FROM system.local"
        trips: list[tuple[float, float]] = []
        while not trips or (len(trips) < TRIPS and trips[-1][0] > SHORT_TRIP):
            before = time.time()
            row = self._session.execute(query, host=host).one()
            after = time.time()
            trips.append((after - before, row["now"] / 1000 - (before + after) / 2))
        return min(trips)[1]

    def away(self) -> list[str]:
        """The nodes that the driver knows to be down."""
        hosts = self._session.cluster.metadata.all_hosts()
        return sorted(host.address for host in hosts if host.is_up is False)

    def with_hints(self) -> list[str]:
        """The nodes that hold hints for others, where they tell (Cassandra 4.1 and later)."""
        query = "SELECT files FROM system_views.pending_hints"
        found = []
        for host in self._session.cluster.metadata.all_hosts():
            try:
                with translated(f"asking {host.address} for its hints"):
                    rows = list(self._session.execute(query, host=host))
            except (Refused, Retryable):
                continue  # it cannot tell; a node that is away is known by another sign
            if any(row["files"] for row in rows):
                found.append(host.address)
        return found
