"""All nodes get new addresses under one name: a process ends, because its sessions know the old."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from reconcilers.words.errors import EndedItself
from reconcilers.words.exit_codes import ExitCode
from streaming.commands.running import canary
from streaming.commands.running.threads import Threads
from streaming.settings import CassandraSettings
from streaming.tables import connect, disconnect, moved_nodes
from tests.fakes.cql_server import serving

NAME = "cassandra.james.test"
FIRST, SECOND = "127.0.0.2", "127.0.0.3"


@dataclass
class Names:
    """What a resolver knows of the one name; a name that it does not know is an error there."""

    at: str = FIRST
    real: Any = field(default=socket.getaddrinfo)

    def resolve(self, host: Any, *more: Any, **named: Any) -> Any:
        if host == NAME and not self.at:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.real(self.at if host == NAME else host, *more, **named)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made.resolve)
    return made


@pytest.fixture
def settings(names: Names) -> Iterator[CassandraSettings]:
    """Of a process that is connected to the node at the first address."""
    with serving([], FIRST) as port:
        made = CassandraSettings(hosts=(NAME,), port=port, request_timeout=5.0)
        connect(made)
        moved_nodes.refuse_moved_nodes(made)  # as long as it answers
    yield made
    disconnect(made)


@contextmanager
def node(settings: CassandraSettings, address: str) -> Iterator[None]:
    with serving([], address, settings.port):
        yield


def test_a_session_that_knows_no_node_any_more_ends_the_process(
    settings: CassandraSettings, names: Names
) -> None:
    names.at = SECOND
    with node(settings, SECOND), pytest.raises(EndedItself, match=f"moved: {SECOND}:") as ended:
        moved_nodes.refuse_moved_nodes(settings)
    assert ended.value.exit_code is ExitCode.START_AGAIN


@pytest.mark.parametrize("at", [FIRST, SECOND, ""], ids=["same", "nobody there", "no such name"])
def test_while_nobody_answers_it_waits(settings: CassandraSettings, names: Names, at: str) -> None:
    names.at = at
    moved_nodes.refuse_moved_nodes(settings)


def test_a_node_that_comes_back_where_it_was_has_not_moved(settings: CassandraSettings) -> None:
    """Also before its session has connected again."""
    with node(settings, FIRST):
        for _ in range(3):
            moved_nodes.refuse_moved_nodes(settings)


def test_the_process_that_writes_canaries_ends_too(
    settings: CassandraSettings, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moved_nodes, "LOOK_EVERY", 0.01)
    ended: list[str] = []

    def writes(stop: Event) -> None:
        stop.wait()
        ended.append("its lease is released")

    names.at = SECOND
    with node(settings, SECOND), pytest.raises(EndedItself):
        canary.run_canaries(settings, writes, Threads(Event()))
    assert ended == ["its lease is released"]
