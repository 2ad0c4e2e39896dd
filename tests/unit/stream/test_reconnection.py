"""A node that refuses a login while it comes up is tried again (real: `stack/test_role.py`)."""

import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cassandra import AuthenticationFailed
from cassandra.cluster import Cluster
from cassandra.connection import ConnectionException

from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings
from streaming.tables.reconnection import Logins, connection_class, reconnection_policy

NODE, TIMEOUT = "10.0.0.1", 5.0


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Exception | str]:
    """What the node answers to one login after the other."""
    given: list[Exception | str] = []

    def factory(_cls: type, /, _endpoint: str, _timeout: float, **_more: object) -> str:
        answer = given.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Cluster.connection_class, "factory", classmethod(factory))
    return given


def test_a_wrong_password_stays_refused(answers: list[Exception | str]) -> None:
    answers += [AuthenticationFailed("no"), AuthenticationFailed("no")]
    made = connection_class()
    for _ in range(2):
        with pytest.raises(AuthenticationFailed):
            made.factory(NODE, TIMEOUT)


def test_once_logged_in_a_refused_login_is_a_lost_connection(
    answers: list[Exception | str],
) -> None:
    answers += ["connection", AuthenticationFailed("roles cannot be read"), "another"]
    made = connection_class()
    assert made.factory(NODE, TIMEOUT) == "connection"
    with pytest.raises(ConnectionException, match="roles cannot be read"):
        made.factory(NODE, TIMEOUT)
    assert made.factory(NODE, TIMEOUT) == "another"


def test_that_a_node_refuses_is_said_once(
    answers: list[Exception | str], caplog: pytest.LogCaptureFixture
) -> None:
    made, no = connection_class(), AuthenticationFailed("roles cannot be read")
    answers += ["connection", no, no, "another", no]
    for _ in range(5):
        with suppress(ConnectionException):
            made.factory(NODE, TIMEOUT)
    said = "a node refuses our login, and is tried again: roles cannot be read"
    assert caplog.messages == [said, said]


def test_each_cluster_logs_in_for_itself(answers: list[Exception | str]) -> None:
    answers += ["connection", AuthenticationFailed("no")]
    connection_class().factory(NODE, TIMEOUT)
    with pytest.raises(AuthenticationFailed):
        connection_class().factory(NODE, TIMEOUT)


def test_each_connection_asks_for_certificates_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def factory(_cls: type, /, *_given: object, ssl_context: object) -> str:
        asked.append(ssl_context)
        return "connection"

    monkeypatch.setattr(Cluster.connection_class, "factory", classmethod(factory))
    contexts = [ssl.create_default_context(), ssl.create_default_context()]
    made = connection_class(iter(contexts).__next__)
    for _ in contexts:
        made.factory(NODE, TIMEOUT)
    assert asked == contexts


def test_each_attempt_to_reconnect_has_the_password_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The driver itself passes on what it asked for before the first attempt."""
    used: list[str] = []

    def factory(_cls: type, /, *_given: object, authenticator: Any, **_named: object) -> str:
        used.append(authenticator.password)
        return "connection"

    monkeypatch.setattr(Cluster.connection_class, "factory", classmethod(factory))
    file = tmp_path / "password"
    file.write_text("first")
    logins = Logins(CassandraSettings(username="reconciler", password_file=file))
    made, before = connection_class(logins=logins), logins.new_authenticator(NODE)
    made.factory(NODE, authenticator=before)
    file.unlink()  # it is being replaced
    made.factory(NODE, authenticator=before)
    file.write_text("second")
    made.factory(NODE, authenticator=before)
    assert used == ["first", "first", "second"]


def test_a_certificate_that_cannot_be_read_for_now_is_a_lost_connection() -> None:
    def missing() -> ssl.SSLContext:
        raise Misconfigured("cassandra.tls_ca: cannot read /ca.pem: No such file or directory")

    with pytest.raises(ConnectionException, match=r"cassandra\.tls_ca"):
        connection_class(missing).factory(NODE, TIMEOUT)


def test_a_node_is_tried_again_for_ever() -> None:
    waits: Iterator[float] = reconnection_policy().new_schedule()
    assert max(next(waits) for _ in range(1000)) < 20
