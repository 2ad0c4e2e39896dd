"""Repair mode refuses an own keyspace that would be lost sooner than James's."""

from types import SimpleNamespace

import pytest

from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings
from streaming.tables import replication
from streaming.tables.replication import more_copies, refuse_too_few_copies
from tests.fakes.checked_cluster import NETWORK

SIMPLE = "org.apache.cassandra.locator.SimpleStrategy"
SETTINGS = CassandraSettings()


def told(monkeypatch: pytest.MonkeyPatch, **replicated: dict[str, str]) -> str | None:
    """What repair mode says about these keyspaces, None if it starts."""
    rows = {name: {"replication": each} for name, each in replicated.items()}

    def execute(_query: str, values: tuple[str]) -> SimpleNamespace:
        return SimpleNamespace(one=lambda: rows.get(values[0]))

    monkeypatch.setattr(replication, "connect", lambda _: SimpleNamespace(execute=execute))
    try:
        refuse_too_few_copies(SETTINGS)
    except Misconfigured as refused:
        return str(refused)
    return None


def test_fewer_copies_than_james_has_are_refused_in_one_line_that_says_how_to_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    james = {"class": SIMPLE, "replication_factor": "3"}
    own = {"class": SIMPLE, "replication_factor": "1"}
    line = told(monkeypatch, apache_james=james, reconciler=own)
    assert line is not None
    assert "\n" not in line
    assert line.startswith("not in repair mode: keyspace reconciler has copies: 1, and ")
    assert "apache_james has 3" in line
    grown = "{'class': 'SimpleStrategy', 'replication_factor': '3'}"
    assert f"ALTER KEYSPACE reconciler WITH replication = {grown};" in line
    assert "nodetool repair --full reconciler" in line


@pytest.mark.parametrize("ours", ["3", "5"])
def test_as_many_or_more_are_not(monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    james = {"class": NETWORK, "paris": "3", "rome": "2"}
    own = {"class": SIMPLE, "replication_factor": ours}
    assert told(monkeypatch, apache_james=james, reconciler=own) is None


def test_james_s_data_centres_are_those_to_grow_to() -> None:
    james = {"class": NETWORK, "paris": "3", "rome": "2/1", "oslo": "0"}
    grown = "{'class': 'NetworkTopologyStrategy', 'paris': '3', 'rome': '2'}"
    assert grown in more_copies(SETTINGS, james)
