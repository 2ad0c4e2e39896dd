"""How a session comes back to a node that went away: soon, and for ever."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from cassandra import AuthenticationFailed
from cassandra.cluster import Cluster
from cassandra.connection import ConnectionException
from cassandra.policies import ExponentialReconnectionPolicy

log = logging.getLogger("reconciler")

SOONEST, LATEST = 1.0, 15.0
"""Seconds until a node that went away is tried again, for ever (the driver's own: up to 600)."""


def reconnection_policy() -> ExponentialReconnectionPolicy:
    """Tries a node again, for ever."""
    return ExponentialReconnectionPolicy(SOONEST, LATEST, max_attempts=None)


def connection_class() -> type[Any]:
    """For one cluster: once a login was accepted, a refused one counts as a lost connection.

    A node that comes up refuses each login until it can read the roles. The driver would then
    never try that node again. A login that was never accepted stays refused.
    """

    class Connection(Cluster.connection_class):  # type: ignore[misc] # the driver has no types
        logged_in = False
        refused_by: ClassVar[set[Any]] = set()

        @classmethod
        def factory(cls, endpoint: Any, *given: Any, **named: Any) -> Any:
            try:
                made = super().factory(endpoint, *given, **named)
            except AuthenticationFailed as refused:
                if not cls.logged_in:
                    raise
                if endpoint not in cls.refused_by:
                    log.warning("a node refuses our login, and is tried again: %s", refused)
                cls.refused_by.add(endpoint)
                raise ConnectionException(str(refused), endpoint) from refused
            cls.logged_in = True
            cls.refused_by.discard(endpoint)
            return made

    return Connection
