"""A session that could not be made leaves nothing behind."""

from functools import partial
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import Cluster, NoHostAvailable

from reconcilers.words.errors import Rejected, Unreachable
from streaming.settings import CassandraSettings
from streaming.tables import open_session, session
from streaming.tables.server_load import watch
from tests.fakes.cql_server import serving

HANG_S = 60.0
"""Against hangs only."""


def test_a_fault_of_tls_is_named_in_place_of_the_drivers_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_cluster: Cluster) -> None:
        raise NoHostAvailable("Unable to connect to any servers", {"a": ConnectionResetError(104)})

    monkeypatch.setattr(Cluster, "connect", refused)
    fault = Rejected("127.0.0.1 port 9042 speaks TLS")
    monkeypatch.setattr(session, "fault", lambda *_: fault)
    with pytest.raises(Rejected) as failed:
        open_session(CassandraSettings())
    told = "connecting to Cassandra at 127.0.0.1 port 9042: 127.0.0.1 port 9042 speaks TLS"
    assert str(failed.value) == told


def test_what_connected_in_part_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver closes it itself only where not even its control connection was made."""
    closed: list[Cluster] = []

    def no_pool(_cluster: Cluster) -> None:
        raise NoHostAvailable("Unable to connect to any servers", ["127.0.0.1"])

    def shutdown(cluster: Cluster) -> None:
        closed.append(cluster)

    monkeypatch.setattr(Cluster, "connect", no_pool)
    monkeypatch.setattr(Cluster, "shutdown", shutdown)
    with pytest.raises(Unreachable):
        open_session(CassandraSettings())
    assert len(closed) == 1


def test_every_request_of_a_session_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the real driver, at a server that knows `system.local` and no other table."""
    answers, failures = Queue[tuple[object, float]](), Queue[Exception]()
    load: Any = SimpleNamespace(
        answered=lambda *told: answers.put(told),
        failed=failures.put,
    )
    monkeypatch.setattr(session, "watch", partial(watch, load=load))
    with serving([], "127.0.0.1") as port:
        made = open_session(CassandraSettings(port=port))
        try:
            made.execute("SELECT key FROM system.local")
            kind, seconds = answers.get(timeout=HANG_S)
            assert (kind, 0 < seconds < HANG_S) == ("SimpleStatement", True)
            with pytest.raises(InvalidRequest):
                made.execute("SELECT nothing FROM nowhere.nothing")
            assert isinstance(failures.get(timeout=HANG_S), InvalidRequest)
        finally:
            made.cluster.shutdown()
