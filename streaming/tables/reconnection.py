"""How a session reconnects to a node that went down: every few seconds, without end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from ssl import SSLContext
from typing import Any, ClassVar

from cassandra import AuthenticationFailed
from cassandra.auth import AuthProvider, PlainTextAuthenticator
from cassandra.cluster import Cluster
from cassandra.connection import ConnectionException
from cassandra.policies import ExponentialReconnectionPolicy

from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings, login_now

log = logging.getLogger("reconciler")

SOONEST, LATEST = 1.0, 15.0
"""Seconds between attempts, from the first to the longest (the driver's default: up to 600)."""


def reconnection_policy() -> ExponentialReconnectionPolicy:
    """A policy that retries a node without end."""
    return ExponentialReconnectionPolicy(SOONEST, LATEST, max_attempts=None)


class Logins(AuthProvider):  # type: ignore[misc] # the driver has no types
    """Logs each connection in with the password as it is then, or was when it could be read."""

    def __init__(self, settings: CassandraSettings) -> None:
        """Read the password once. Raises `Misconfigured`."""
        self._settings = settings
        self._last = login_now(settings) or ("", "")

    def new_authenticator(self, host: str) -> PlainTextAuthenticator:  # noqa: ARG002
        """What logs one connection in."""
        with suppress(Misconfigured):  # the file is being replaced
            self._last = login_now(self._settings) or ("", "")
        return PlainTextAuthenticator(*self._last)


def connection_class(
    tls: Callable[[], SSLContext | None] = lambda: None, logins: Logins | None = None
) -> type[Any]:
    """A connection class in which a refused login, after an accepted one, is a lost connection.

    Each connection asks ``tls`` for its context and ``logins`` for its password: both may have been
    replaced. The driver itself keeps the password of its first attempt to reconnect to a node.

    A node that starts refuses logins until it can read the roles, and the driver would never retry
    it. A login that was never accepted stays refused. Make one class for each cluster.
    """

    class Connection(Cluster.connection_class):  # type: ignore[misc] # the driver has no types
        logged_in = False
        refused_by: ClassVar[set[Any]] = set()

        @classmethod
        def factory(cls, endpoint: Any, *given: Any, **named: Any) -> Any:
            try:
                named["ssl_context"] = tls()
                if logins is not None:
                    named["authenticator"] = logins.new_authenticator(str(endpoint))
                made = super().factory(endpoint, *given, **named)
            except Misconfigured as wrong:
                raise ConnectionException(str(wrong), endpoint) from wrong
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
