"""The nodes of a cluster: their clocks, which are down, and which hold hints for others."""

from __future__ import annotations

import time

from cassandra.cluster import Session
from cassandra.pool import Host

from checkpoints.cassandra.driver_errors import translated
from reconcilers.words.errors import Refused, Retryable, Unreachable

TRIPS, SHORT_TRIP = 3, 0.1
"""How often a node's clock is read at most, until an answer takes at most so many seconds."""


class Nodes:
    """Reads from each node that the driver lists."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def members(self) -> set[str]:
        """The addresses of all nodes, those that do not answer included."""
        return {host.address for host in self._session.cluster.metadata.all_hosts()}

    def ids(self) -> set[str]:
        """The host ids of all nodes, those that do not answer included."""
        return {str(host.host_id) for host in self._session.cluster.metadata.all_hosts()}

    def clocks(self) -> dict[str, float]:
        """How far (s) each node's clock is ahead of ours by address, exact to some milliseconds.

        Nodes that do not answer are left out. Raises `Unreachable` if none answers.
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
        """How far (s) a node's clock is ahead, from the shortest round trip: half is the error."""
        # not now(): its time-based UUIDs go on from where they were when a clock is set back
        query = "SELECT toUnixTimestamp(currentTimestamp()) AS now FROM system.local"
        trips: list[tuple[float, float]] = []
        while not trips or (len(trips) < TRIPS and trips[-1][0] > SHORT_TRIP):
            before = time.time()
            row = self._session.execute(query, host=host).one()
            after = time.time()
            trips.append((after - before, row["now"] / 1000 - (before + after) / 2))
        return min(trips)[1]

    def away(self) -> list[str]:
        """The addresses of the nodes that the driver holds to be down."""
        hosts = self._session.cluster.metadata.all_hosts()
        return sorted(host.address for host in hosts if host.is_up is False)

    def with_hints(self) -> list[str]:
        """The addresses of the nodes that report hints for others (Cassandra 4.1 and later)."""
        query = "SELECT files FROM system_views.pending_hints"
        found = []
        for host in self._session.cluster.metadata.all_hosts():
            try:
                with translated(f"asking {host.address} for its hints"):
                    rows = list(self._session.execute(query, host=host))
            except (Refused, Retryable):
                continue  # not readable; `away` lists nodes that are down
            if any(row["files"] for row in rows):
                found.append(host.address)
        return found
