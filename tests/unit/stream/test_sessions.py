"""A session that could not be made leaves nothing behind."""

from unittest.mock import Mock

import pytest
from cassandra.cluster import Cluster, NoHostAvailable

from reconcilers.words.errors import Rejected, Unreachable
from streaming.settings import CassandraSettings
from streaming.tables import open_session, session


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
    made = Mock()
    monkeypatch.setattr(Cluster, "connect", lambda _: made)
    monkeypatch.setattr(session, "read_dates_as_numbers", lambda each: each)
    assert open_session(CassandraSettings()) is made
    made.add_request_init_listener.assert_called_once()
