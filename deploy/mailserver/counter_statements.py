"""Statements to the counter tables, and how they fail.

A counter has no write time and an update of it is not idempotent: one that is lost stays lost, and
one that is sent again after a timeout counts twice.
"""

import logging
import time

from cassandra.cluster import Session

from deploy.mailserver.counters import COUNTER_TABLES, counter_statement
from deploy.mailserver.faults import FaultKind, Faults, ProcessDiedError
from deploy.mailserver.history import CounterWrite
from deploy.mailserver.statements import SERVER_TROUBLE, Statements

log = logging.getLogger(__name__)


class Counters:
    """Sends counter updates as one mail server does; safe for threads.

    That one fails is logged, and the mail server goes on: no user hears of it.
    """

    def __init__(self, session: Session, keyspace: str, faults: Faults) -> None:
        self._statements = Statements(session)
        self._keyspace = keyspace
        self._faults = faults

    def send(self, write: CounterWrite) -> None:
        """Send one update. Raises ProcessDiedError where the process dies before it."""
        fault = self._faults.meet(write)
        match fault.kind if fault else None:
            case FaultKind.NOT_SENT:
                log.debug("a counter update was lost: %s", write)
            case FaultKind.DIED_BETWEEN_WRITES:
                raise ProcessDiedError(write)
            case FaultKind.DOUBLED:
                self._apply(write)
                self._apply(write)
            case _:
                self._apply(write)

    def _apply(self, write: CounterWrite) -> None:
        """Apply it; again where no answer came, if James does so with this table."""
        for pause_s in (0.0, *COUNTER_TABLES[write.projection].pauses_s):
            time.sleep(pause_s)
            try:
                return self._update(write)
            except SERVER_TROUBLE as error:
                log.warning("a counter update failed: %r", error)
        return None

    def _update(self, write: CounterWrite) -> None:
        cql, values = counter_statement(write, self._keyspace)
        self._statements.start(cql, values).result()
        self._faults.ledger.counted(write)
