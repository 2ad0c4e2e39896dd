"""A session that could not be made leaves nothing behind."""

import pytest
from cassandra.cluster import Cluster, NoHostAvailable

from reconcilers.words.errors import Unreachable
from streaming.settings import CassandraSettings
from streaming.tables import open_session


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
