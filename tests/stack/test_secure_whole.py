"""TLS, logins and rights on all servers at once: the product's work from doctor to replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from deploy.embedded import ADMIN, Stack
from tests.stack.scenes import Place, cells, insertion, reconcile
from tests.stack.streams import Stream, until
from tests.stack.test_secure import admin, config, secure

__all__ = ["admin", "config", "secure"]
pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def stream(config: Path, secure: Stack) -> Iterator[Stream]:
    """A stream of the shipped role, whose doctor is content."""
    (config.parent / "admin.password").write_text(f"{ADMIN.password}\n")
    fix = ("--fix", "--admin-username", ADMIN.username, "--admin-password-file")
    run(config, "doctor", *fix, str(config.parent / "admin.password"))
    until("the agent is back", lambda: run(config, "doctor").returncode == 0)
    with Stream(config) as running:
        running.wait_until_watching()
        yield running
        assert running.stop() == 0


def run(config: Path, *words: str) -> Any:
    return reconcile(*words, "--config", str(config))


def succeed(config: Path, *words: str) -> str:
    answer = run(config, *words)
    assert answer.returncode == 0, f"{words}: {answer.stdout}{answer.stderr}"
    return str(answer.stdout)


class Mail:
    """Rows of messages, by the admin's session."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session, self._keyspace = session, keyspace

    def write_truth(self, place: Place) -> None:
        """A message that its projection does not have."""
        row = place.ids | cells()
        cql = insertion(f"{self._keyspace}.imapuidtable", row)
        self._session.execute(self._session.prepare(cql), list(row.values()))

    def lists(self, place: Place) -> bool:
        """Whether the projection has it."""
        cql = f"SELECT messageid FROM {self._keyspace}.messageidtable WHERE mailboxid=%s AND uid=%s"
        row = self._session.execute(cql, (place.mailboxid, place.uid)).one()
        return row is not None and row[0] == place.messageid


@pytest.fixture
def mail(admin: Session, secure: Stack) -> Mail:
    return Mail(admin, secure.keyspace)


def test_a_difference_is_repaired_and_a_sweep_and_a_replay_run(
    stream: Stream, mail: Mail, config: Path
) -> None:
    place = Place()
    mail.write_truth(place)
    until("it is repaired", lambda: mail.lists(place))
    until("it is verified", lambda: stream.findings(uid=1, mailboxid=place.mailboxid))
    swept = succeed(config, "sweep", "--reason", "everything is on")
    assert "message: 2 rows were compared, 0 suspects found" in swept
    assert "message" in succeed(config, "replay", "--from-time", "2026-01-01T00:00")
    assert "mode" in succeed(config, "status")
    assert stream.died() is None


def test_nothing_secret_is_logged_or_shown(stream: Stream, config: Path) -> None:
    files = [config.parent / f"{server}.password" for server in ("cassandra", "kafka")]
    secrets = [each.read_text().strip() for each in files]
    told = stream.log.read_text() + succeed(config, "config", "show")
    assert [each for each in secrets if each in told] == []
