"""The ring: which node owns which tokens, by the driver's metadata, and whether it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Any

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.capture.frontier import Node
from reconcilers.words.errors import Refused, Retryable

REFRESH_EVERY = 60.0
"""Seconds between two reads of the ring by the driver."""
NORMAL = "NORMAL"
GONE = frozenset({"LEFT", "removed", "shutdown", "hibernate", ""})
"""States of a node that takes no writes."""


class Ring:
    """The ring of one cluster. ``keyspace`` has one copy of each row (`canary_schema`)."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session = session
        self._keyspace = keyspace
        self._places: tuple[str, dict[Node, str]] = ("", {})
        self._named: tuple[Any, str] = (None, "")
        self._refreshed_at = time.monotonic()

    def places(self) -> Mapping[Node, str]:
        """For each node a partition key whose rows only that node stores."""
        name = self.name()
        if self._places[0] != name:
            self._places = name, dict(self._found_places())
        return self._places[1]

    def name(self) -> str:
        """A hash of the nodes and their tokens."""
        tokens = self._session.cluster.metadata.token_map
        if tokens is not self._named[0] or tokens is None:
            owners = {} if tokens is None else tokens.token_to_host_owner
            told = sorted(f"{token}:{host.host_id}" for token, host in owners.items())
            self._named = tokens, sha256(";".join(told).encode()).hexdigest()[:16]
        return self._named[1]

    def steady(self) -> bool:
        """Whether no node is joining, leaving or moving.

        True if states cannot be read (before 4.1, or without the right), False without an answer.
        """
        self._refresh()
        query = "SELECT status, status_with_port FROM system_views.gossip_info"
        try:
            with translated("asking for the states of nodes"):
                states = [_state(row) for row in self._session.execute(query)]
        except Refused:
            return True
        except Retryable:
            return False
        return all(each in {NORMAL, *GONE} for each in states)

    def _refresh(self) -> None:
        """Let the driver read the ring again: it gets no event when a node moves its tokens."""
        if time.monotonic() - self._refreshed_at > REFRESH_EVERY:
            self._refreshed_at = time.monotonic()
            with suppress(Refused, Retryable), translated("asking for the ring"):
                self._session.cluster.refresh_nodes(force_token_rebuild=True)

    def _found_places(self) -> Iterator[tuple[Node, str]]:
        for host in self._session.cluster.metadata.all_hosts():
            tried = (f"{host.host_id}/{number}" for number in count())
            owned = (each for each in tried if self._owner(each) in (None, host.host_id))
            yield str(host.host_id), next(owned)

    def _owner(self, place: str) -> Any:
        owners = self._session.cluster.metadata.get_replicas(self._keyspace, place.encode())
        return owners[0].host_id if owners else None


def _state(row: Mapping[str, str | None]) -> str:
    """The state of a node. The old column ``status`` is set for the answering node only."""
    told = row["status_with_port"] or row["status"] or ""
    return told.partition(",")[0]
