"""A driver session that records each write in a history: the one place that all of them pass."""

from typing import Any

from cassandra import InvalidRequest, Unauthorized, Unavailable
from cassandra.cluster import ResponseFuture, Session

from deploy.nemesis.history import UserAnswer, UserHistory, UserOutcome
from deploy.nemesis.statement import UserStatement, UserWriteKind, user_statement

REFUSED = (InvalidRequest, Unauthorized, Unavailable)
"""Errors of a plain write that Cassandra raises before it applies it anywhere."""


class RecordedSession:
    """Stands for the session of a mail server, which only prepares and executes.

    The history's file gets a line before a write is sent, and one when its answer comes.
    """

    def __init__(self, session: Session, history: UserHistory) -> None:
        self._session = session
        self._history = history

    def prepare(self, cql: str) -> "RecordedPrepared":
        """Prepare a statement."""
        return RecordedPrepared(self._session.prepare(cql), cql)

    def execute_async(self, bound: Any) -> ResponseFuture:
        """Send a bound statement of `prepare`."""
        statement: UserStatement | None = bound.user_statement
        if statement is None:
            return self._session.execute_async(bound)
        number = self._history.begun(statement)
        future = self._session.execute_async(bound)

        def answered(rows: Any) -> None:
            if statement.conditional and not rows[0][0]:
                answer = _answer(statement, future, UserOutcome.FAILED, "not applied")
            else:
                answer = _answer(statement, future, UserOutcome.OK)
            self._history.ended(number, answer)

        def failed(error: Exception) -> None:
            refused = isinstance(error, REFUSED) and _is_plain(statement)
            claim = UserOutcome.FAILED if refused else UserOutcome.UNKNOWN
            told = f"{type(error).__name__}: {error}"
            self._history.ended(number, _answer(statement, future, claim, told))

        future.add_callbacks(answered, failed)
        return future


class RecordedPrepared:
    """A prepared statement whose bound ones tell what they write."""

    def __init__(self, prepared: Any, cql: str) -> None:
        self._prepared = prepared
        self._cql = cql

    def bind(self, values: list[object]) -> Any:
        """Bind values. Raises ValueError if the history cannot record the statement."""
        bound = self._prepared.bind(values)
        bound.user_statement = user_statement(self._cql, values)
        return bound


def _answer(
    statement: UserStatement, future: Any, claim: UserOutcome, error: str = ""
) -> UserAnswer:
    """How a write ended. One that was never sent failed.

    One that was sent to several hosts and failed at the last may have been applied by the first: a
    lightweight transaction is then not applied because its own first attempt was.
    """
    attempts = len(future.attempted_hosts)
    outcome = claim
    if claim is not UserOutcome.OK and attempts == 0:
        outcome = UserOutcome.FAILED
    elif claim is UserOutcome.FAILED and attempts > 1:
        outcome = UserOutcome.UNKNOWN
    time = statement.time
    if time is None and _is_plain(statement):
        time = future.message.timestamp
    return UserAnswer(outcome, time, max(1, attempts), error)


def _is_plain(statement: UserStatement) -> bool:
    """Whether its write time is a client's, and Cassandra refuses it before it applies it."""
    return not statement.conditional and statement.kind is not UserWriteKind.COUNT
