"""Statements to tables that follow a truth: James's retries, and where faults strike."""

import logging
import time
from collections.abc import Callable, Mapping

from cassandra.cluster import Session

from deploy.mailserver.attachments import REFERENCES, reference_statement
from deploy.mailserver.faults import (
    Fault,
    FaultKind,
    Faults,
    ProcessDiedError,
    StatementTimeoutError,
)
from deploy.mailserver.history import MESSAGES, ProjectionWrite, Statement
from deploy.mailserver.indexes import INDEX_PROJECTIONS, index_statement
from deploy.mailserver.ledger import Ledger
from deploy.mailserver.mail import Clock
from deploy.mailserver.mailbox_statements import MAILBOXES, is_retried, mailbox_statement
from deploy.mailserver.rights import RIGHTS_PROJECTIONS, rights_statement
from deploy.mailserver.statements import SERVER_TROUBLE, Statements

log = logging.getLogger(__name__)

RETRIES = 5
FIRST_PAUSE_S = 0.010
LONGEST_PAUSE_S = 1.0


class ProjectionWriter:
    """Sends statements to projections and mailboxes as one mail server does; safe for threads."""

    def __init__(self, session: Session, keyspace: str, clock: Clock, faults: Faults) -> None:
        self._statements = Statements(session)
        self._keyspace = keyspace
        self._clock = clock
        self._faults = faults

    @property
    def ledger(self) -> Ledger:
        """What is noted of its statements, and of what they must follow."""
        return self._faults.ledger

    def send(self, write: ProjectionWrite) -> None:
        """Send one statement.

        New messages and most statements to mailboxes are retried 5 times (10 ms to 1 s).

        Raises StatementTimeoutError or the driver's error when the last attempt failed, and
        ProcessDiedError where the process dies before the statement.
        """
        fault = self._faults.meet(write)
        retries = _retries(write)
        for attempt in range(retries):
            try:
                return self._attempt(write, fault, attempt)
            except (StatementTimeoutError, *SERVER_TROUBLE):
                time.sleep(min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S))
        return self._attempt(write, fault, retries)

    def _attempt(self, write: ProjectionWrite, fault: Fault | None, attempt: int) -> None:
        timestamp_us = self._clock.now_us()
        match fault.kind if fault else None:
            case FaultKind.NOT_SENT:
                raise StatementTimeoutError(write)
            case FaultKind.DIED_BETWEEN_WRITES:
                raise ProcessDiedError(write)
            case FaultKind.APPLIED_BUT_TIMED_OUT if attempt == 0:
                self._apply(write, timestamp_us)
                raise StatementTimeoutError(write)
            case FaultKind.LATE if fault:
                self._faults.later(fault.delay_s, lambda: self._apply_late(write, timestamp_us))
            case FaultKind.LATE_RETRIED if fault:
                self._faults.later(
                    fault.delay_s, lambda: self._apply_late(write, self._clock.now_us())
                )
            case _:
                self._apply(write, timestamp_us)

    def _apply_late(self, write: ProjectionWrite, timestamp_us: int) -> None:
        """Apply it when nobody waits for the answer any more."""
        try:
            self._apply(write, timestamp_us)
        except SERVER_TROUBLE as error:
            log.warning("a late %s got no answer: %r", write.statement, error)

    def _apply(self, write: ProjectionWrite, timestamp_us: int) -> None:
        cql, values = self._statement(write, timestamp_us)
        try:
            self._statements.start(cql, values).result()
        except SERVER_TROUBLE:
            self._faults.ledger.doubtful(write)
            raise
        self._faults.ledger.applied(write, timestamp_us)

    def _statement(self, write: ProjectionWrite, timestamp_us: int) -> tuple[str, list[object]]:
        if write.projection != MESSAGES:
            return STATEMENTS[write.projection](write, self._keyspace, timestamp_us)
        cql, values = statement_of(write, f"{self._keyspace}.messageidtable")
        return cql, [timestamp_us, *values]


STATEMENTS: Mapping[str, Callable[[ProjectionWrite, str, int], tuple[str, list[object]]]] = {
    **dict.fromkeys(INDEX_PROJECTIONS, index_statement),
    **dict.fromkeys(RIGHTS_PROJECTIONS, rights_statement),
    REFERENCES: reference_statement,
    MAILBOXES: mailbox_statement,
}
"""What makes the CQL of a write, by its projection, from a keyspace and a write time (µs)."""


def _retries(write: ProjectionWrite) -> int:
    new = write.projection == MESSAGES and write.statement is Statement.INSERT
    again = write.projection == MAILBOXES and is_retried(write)
    return RETRIES if new or again else 0


def statement_of(write: ProjectionWrite, table: str) -> tuple[str, list[object]]:
    """The CQL of a write to messageidtable and its values after the write time.

    Inserts are UPDATEs, so leave no row marker; user flags are added and removed by element.
    """
    if write.statement is Statement.DELETE:
        cql = f"DELETE FROM {table} USING TIMESTAMP ? WHERE mailboxid = ? AND uid = ?"
        return cql, [write.mailboxid, write.uid]
    assignments = [f"{column} = ?" for column in write.cells]
    values = list(write.cells.values())
    for sign, elements in (("+", write.added), ("-", write.removed)):
        if elements:
            assignments.append(f"userflags = userflags {sign} ?")
            values.append(set(elements))
    cql = (
        f"UPDATE {table} USING TIMESTAMP ? SET {', '.join(assignments)} "
        "WHERE mailboxid = ? AND uid = ?"
    )
    return cql, [*values, write.mailboxid, write.uid]
