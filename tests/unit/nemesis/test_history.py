"""The history of a run, as it is written and read: what a session records of each answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unavailable
from cassandra.cluster import NoHostAvailable

from deploy.nemesis.history import UserAnswer, UserHistory, UserOutcome, read_history
from deploy.nemesis.session import RecordedSession
from tests.fakes.memory_cassandra import Bound
from tests.unit.nemesis.scene import Future

PLAIN = "UPDATE mail.mailbox SET name = ? WHERE id = ?"
STAMPED = "UPDATE mail.mailbox USING TIMESTAMP ? SET name = ? WHERE id = ?"
IF_NEW = "INSERT INTO mail.mailbox (id, name) VALUES (?, ?) IF NOT EXISTS"
COUNT = "UPDATE mail.currentquota SET storage = storage + ? WHERE quotaroot = ?"
OK, FAILED, UNKNOWN = UserOutcome.OK, UserOutcome.FAILED, UserOutcome.UNKNOWN
TIMED_OUT, REFUSED, DOWN = OperationTimedOut(), InvalidRequest("no"), Unavailable("two of three")


class OneAnswer:
    """A session that answers everything alike, from so many hosts."""

    def __init__(self, applied: Any, error: Exception | None, hosts: int) -> None:
        self._future = Future([(applied,)], error, ["127.0.0.1"] * hosts)
        self._future.message.timestamp = 77

    def prepare(self, cql: str) -> Any:
        return self

    def bind(self, values: list[object]) -> Bound:
        return Bound(PLAIN, values)

    def execute_async(self, _: Bound) -> Future:
        return self._future


@pytest.mark.parametrize(
    ("cql", "applied", "error", "hosts", "outcome"),
    [
        (PLAIN, None, None, 1, OK),
        (PLAIN, None, None, 2, OK),
        (PLAIN, None, TIMED_OUT, 1, UNKNOWN),
        (PLAIN, None, REFUSED, 1, FAILED),
        (PLAIN, None, DOWN, 1, FAILED),
        (PLAIN, None, DOWN, 2, UNKNOWN),
        (PLAIN, None, NoHostAvailable("none", {}), 0, FAILED),
        (IF_NEW, True, None, 1, OK),
        (IF_NEW, False, None, 1, FAILED),
        (IF_NEW, False, None, 2, UNKNOWN),
        (IF_NEW, None, DOWN, 1, UNKNOWN),
        (COUNT, None, DOWN, 1, UNKNOWN),
        (COUNT, None, None, 2, OK),
    ],
)
def test_the_outcome_of_an_answer(
    tmp_path: Path,
    cql: str,
    applied: bool | None,
    error: Exception | None,
    hosts: int,
    outcome: UserOutcome,
) -> None:
    history = UserHistory(tmp_path / "history.jsonl")
    session = RecordedSession(OneAnswer(applied, error, hosts), history)
    session.execute_async(session.prepare(cql).bind(["a", "b"]))
    [write] = read_history((tmp_path / "history.jsonl").open())
    assert write.answer.outcome is outcome
    assert write.answer.attempts == max(1, hosts)
    assert write.answer.time == (77 if cql == PLAIN else None)
    assert write.ended is not None
    assert write.begun <= write.ended


def test_the_time_of_the_statement_is_its_write_time(tmp_path: Path) -> None:
    history = UserHistory(tmp_path / "history.jsonl")
    session = RecordedSession(OneAnswer(None, None, 1), history)
    session.execute_async(session.prepare(STAMPED).bind([5, "a", "b"]))
    [write] = read_history((tmp_path / "history.jsonl").open())
    assert (write.statement.time, write.answer.time) == (5, 5)


def test_a_read_is_not_recorded(tmp_path: Path) -> None:
    history = UserHistory(tmp_path / "history.jsonl")
    session = RecordedSession(OneAnswer(None, None, 1), history)
    session.execute_async(session.prepare("SELECT * FROM mail.mailbox WHERE id = ?").bind(["a"]))
    assert (tmp_path / "history.jsonl").read_text() == ""


def test_a_write_of_a_killed_run_has_an_unknown_outcome() -> None:
    begun = {"begun": 1, "at": 3, "table": "mailbox", "kind": "update", "key": ["a"]}
    ended = {"ended": 1, "at": 4, "outcome": "ok", "time": 2, "attempts": 1, "error": ""}
    lines = [json.dumps(begun) + "\n", json.dumps(ended)]
    [write] = read_history(lines)
    assert (write.answer, write.ended) == (UserAnswer(UNKNOWN), None)
    [write] = read_history([each.rstrip() + "\n" for each in lines])
    assert (write.answer, write.ended) == (UserAnswer(OK, 2), 4)


def test_a_history_is_never_written_over(tmp_path: Path) -> None:
    UserHistory(tmp_path / "history.jsonl").close()
    with pytest.raises(FileExistsError):
        UserHistory(tmp_path / "history.jsonl")
