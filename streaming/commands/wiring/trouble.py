"""Why no counter may be corrected now, whoever would do it."""

from __future__ import annotations

from collections.abc import Callable

from checkpoints.lease import Lease
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.nodes import NodesWatch
from streaming.settings import Settings
from streaming.tables import Nodes, connect


def trouble_of(settings: Settings, lease: Lease | None) -> Callable[[], Waiting | None]:
    """A function that returns why no counter may be corrected now, or None."""
    nodes = NodesWatch(Nodes(connect(settings.cassandra)), settings.tally.after_outage)

    def trouble() -> Waiting | None:
        if lease is not None and not lease.holds():
            return Waiting(Wait.LEASE, "the lease is lost")
        return nodes.trouble()

    return trouble
