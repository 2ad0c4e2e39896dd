"""A writer's connection to Cassandra, on which statements fail as it was planned."""

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import ResponseFuture, Session

from deploy.mailserver.faults import (
    Fault,
    FaultKind,
    Faults,
    ProcessDiedError,
    StatementTimeoutError,
)
from deploy.mailserver.history import CounterWrite
from deploy.mailserver.statements import SERVER_TROUBLE, Statements

log = logging.getLogger(__name__)

TROUBLE = (*SERVER_TROUBLE, StatementTimeoutError)
"""What a writer sees of a statement that may have been applied, or not."""
PAUSE_S = 0.1


def until_answered() -> Iterator[float]:
    """The pauses (seconds) of a writer that never gives up."""
    return itertools.repeat(PAUSE_S)


def persist(attempt: Callable[[], None], pauses_s: Iterable[float]) -> bool:
    """Try once, and once more after each pause; False where no attempt was answered."""
    for pause_s in itertools.chain((0.0,), pauses_s):
        if pause_s:
            time.sleep(pause_s)
        try:
            attempt()
        except TROUBLE as error:
            log.debug("no answer: %r", error)
        else:
            return True
    return False


@dataclass(frozen=True)
class Place:
    """Where a run counts, and what goes wrong there."""

    session: Session
    keyspace: str
    statements: Statements
    faults: Faults

    @classmethod
    def at(cls, session: Session, keyspace: str, faults: Faults | None = None) -> "Place":
        """Without faults where none are given."""
        return cls(session, keyspace, Statements(session), faults or Faults())

    def ask(
        self, cql: str, values: list[object], consistency: int = ConsistencyLevel.QUORUM
    ) -> list[Any]:
        """The rows that a statement answers; CQL names the keyspace as {keyspace}."""
        text = cql.format(keyspace=self.keyspace)
        return list(self.statements.start(text, values, consistency).result())


@dataclass(frozen=True)
class Sent:
    """A statement under way; ``answer`` is None where it was lost before it arrived."""

    answer: ResponseFuture | None
    fault: FaultKind | None

    def result(self) -> Any:
        """Its row, if it has one. Raises TROUBLE."""
        row = self.answer.result().one() if self.answer is not None else None
        if self.fault is not None:
            raise StatementTimeoutError(self.fault)
        return row


class Wire:
    """One writer's connection. The first statement for a change meets the change's fault."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._planned: dict[UUID | str, Fault] = {}

    def meet(self, write: CounterWrite) -> None:
        """This change is about to be counted."""
        fault = self.place.faults.meet(write)
        if fault is not None:
            self._planned[write.owner] = fault

    def start(self, owner: UUID | str, cql: str, values: list[object]) -> Sent:
        """Send a write to a mailbox's row. Raises ProcessDiedError where the writer dies first."""
        fault = self._planned.pop(owner, None)
        kind = fault.kind if fault is not None else None
        if kind is FaultKind.DIED_BETWEEN_WRITES:
            raise ProcessDiedError(owner)
        if kind is FaultKind.LOST_BUT_TIMED_OUT:
            return Sent(None, kind)
        text = cql.format(keyspace=self.place.keyspace)
        return Sent(self.place.statements.start(text, values), kind)

    def write(self, owner: UUID | str, cql: str, values: list[object]) -> Any:
        """The same, answered. Raises TROUBLE, ProcessDiedError."""
        return self.start(owner, cql, values).result()
