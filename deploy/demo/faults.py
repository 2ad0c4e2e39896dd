"""Seeded faults on projection statements: which statement meets which fault, and when.

The n-th projection statement of a run meets the same fault whenever the seed is the same.
"""

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from deploy.demo.history import ProjectionWrite
from deploy.demo.ledger import Ledger


class FaultKind(StrEnum):
    """What can become of a projection statement."""

    NOT_SENT = "not_sent"
    """Lost with all its retries; the mail server gives up."""
    APPLIED_BUT_TIMED_OUT = "applied_but_timed_out"
    """Applied, but the mail server believes it failed (and retries where James does)."""
    DIED_BETWEEN_WRITES = "died_between_writes"
    """The process dies after the truth's statement: the rest of the operation never happens."""
    LATE = "late"
    """Arrives seconds later with its original write time; the mail server goes on."""
    LATE_RETRIED = "late_retried"
    """Sent again seconds later, so with a new write time; the mail server goes on."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `delay_s` (seconds) counts for the late kinds only."""

    id: str
    kind: FaultKind
    delay_s: float


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """`count` faults spread at random over the first `statements` projection statements.

    The kinds come in equal shares. Late statements are late by `late_s` (from, to) seconds.
    """

    seed: int
    count: int
    statements: int
    kinds: tuple[FaultKind, ...] = tuple(FaultKind)
    late_s: tuple[float, float] = (2.0, 6.0)

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
            planned[number] = Fault(f"fault-{number:06d}", kind, chance.uniform(*self.late_s))
        return planned


NO_FAULTS = FaultPlan(seed=0, count=0, statements=0)


class StatementTimeoutError(Exception):
    """What a mail server sees of a statement that was lost, or whose answer was."""


class ProcessDiedError(Exception):
    """The mail server's process died here; whoever runs it may start another."""


class Faults:
    """Gives each projection statement its fault, and sends the late ones when due."""

    def __init__(self, plan: FaultPlan = NO_FAULTS, ledger: Ledger | None = None) -> None:
        self.ledger = ledger or Ledger()
        self._planned = plan.faults()
        self._statements = 0
        self._lock = threading.Lock()
        self._late: list[threading.Timer] = []

    def meet(self, write: ProjectionWrite) -> Fault | None:
        """The fault that this statement meets, noted in the ledger; mostly None."""
        with self._lock:
            fault = self._planned.get(self._statements)
            self._statements += 1
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
