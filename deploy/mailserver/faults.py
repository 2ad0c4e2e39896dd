"""Seeded faults on projection statements: which statement meets which fault, and when.

Each projection has a plan of its own: the n-th statement to it meets the same fault whenever the
seed is the same.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from deploy.mailserver.history import MESSAGES, MailWrite
from deploy.mailserver.ledger import Ledger


class FaultKind(StrEnum):
    """What can become of a projection statement."""

    NOT_SENT = "not_sent"
    """Lost with all its retries; the mail server gives up."""
    APPLIED_BUT_TIMED_OUT = "applied_but_timed_out"
    """Applied, but the mail server believes it failed (and retries where James does)."""
    LOST_BUT_TIMED_OUT = "lost_but_timed_out"
    """Lost, and reported as timed out: the mail server cannot tell it from the one above."""
    DIED_BETWEEN_WRITES = "died_between_writes"
    """The process dies before this statement: the rest of the operation never happens."""
    LATE = "late"
    """Arrives seconds later with its original write time; the mail server goes on."""
    LATE_RETRIED = "late_retried"
    """Sent again seconds later, so with a new write time; the mail server goes on."""
    DOUBLED = "doubled"
    """A counter's update is applied, reported as timed out, and sent again: it counts twice."""


MESSAGE_FAULTS = (
    FaultKind.NOT_SENT,
    FaultKind.APPLIED_BUT_TIMED_OUT,
    FaultKind.DIED_BETWEEN_WRITES,
    FaultKind.LATE,
    FaultKind.LATE_RETRIED,
)
INDEX_FAULTS = (
    FaultKind.NOT_SENT,
    FaultKind.APPLIED_BUT_TIMED_OUT,
    FaultKind.DIED_BETWEEN_WRITES,
)
COUNTER_FAULTS = (FaultKind.NOT_SENT, FaultKind.DOUBLED, FaultKind.DIED_BETWEEN_WRITES)
"""What can become of a statement to messageidtable, to an index, to a counter."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `delay_s` (seconds) counts for the late kinds only."""

    id: str
    kind: FaultKind
    delay_s: float


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """`count` faults spread at random over the first `statements` statements to one projection.

    The kinds come in equal shares. Late statements are late by `late_s` (from, to) seconds.
    """

    seed: int
    count: int
    statements: int
    kinds: tuple[FaultKind, ...] = MESSAGE_FAULTS
    late_s: tuple[float, float] = (2.0, 6.0)
    projection: str = MESSAGES

    def faults(self) -> Mapping[int, Fault]:
        """The fault of each unlucky statement, by its number from 0.

        Raises ValueError where there are more faults than statements.
        """
        if self.count > self.statements:
            raise ValueError(f"{self.count} faults do not fit in {self.statements} statements")
        chance = random.Random(self.seed)
        numbers = chance.sample(range(self.statements), self.count)
        planned = {}
        for place, number in enumerate(numbers):
            kind = self.kinds[place % len(self.kinds)]
            fault_id = f"{self.projection}-{number:06d}"
            planned[number] = Fault(fault_id, kind, chance.uniform(*self.late_s))
        return planned


class StatementTimeoutError(Exception):
    """What a mail server sees of a statement that was lost, or whose answer was."""


class ProcessDiedError(Exception):
    """The mail server's process died here; whoever runs it may start another."""


class Faults:
    """Gives each projection statement its fault, and sends the late ones when due."""

    def __init__(self, plans: Sequence[FaultPlan] = (), ledger: Ledger | None = None) -> None:
        self.ledger = ledger or Ledger()
        self._planned = {plan.projection: plan.faults() for plan in plans}
        self._statements: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._late: list[threading.Timer] = []

    def meet(self, write: MailWrite) -> Fault | None:
        """The fault that this statement meets, noted in the ledger; mostly None."""
        with self._lock:
            number = self._statements[write.projection]
            self._statements[write.projection] += 1
        fault = self._planned.get(write.projection, {}).get(number)
        self.ledger.meant(write)
        if fault is not None:
            self.ledger.fault(fault.id, fault.kind, write)
        return fault

    def later(self, delay_s: float, send: Callable[[], None]) -> None:
        """Call `send` after `delay_s` seconds, on a thread of its own."""
        timer = threading.Timer(delay_s, send)
        timer.daemon = True
        with self._lock:
            self._late.append(timer)
        timer.start()

    def wait_for_late_statements(self) -> None:
        """Return when every late statement has been sent."""
        with self._lock:
            late = list(self._late)
        for timer in late:
            timer.join()
