"""Whether a person has paused repairs: asked again before each write, never older than a second."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.lease import time_awake_or_asleep
from checkpoints.pauses import Pauses
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.pause import Pause, in_doubt, why_paused, without_pilot
from reconcilers.limits.pilot import OwnerOf
from reconcilers.limits.write_target import WriteTarget
from reconcilers.words.errors import Refused
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.own_keyspace import OwnKeyspace

log = logging.getLogger("reconciler")

OLDEST = 1.0
"""So old (s) an answer may be when a write is sent."""
TRIES = 2
OWNERS_FOR = 60.0
"""So long (s) it is not read again whose a mailbox is."""
OWNERS_KNOWN = 100_000
"""Mailboxes whose owner is kept in memory."""
UNKNOWN = Waiting(
    Wait.PAUSES_UNKNOWN,
    "whether repairs are paused is not known: our keyspace takes longer than a second",
)


def nobodys(_mailbox: UUID) -> QuotaRoot | None:
    """For what asks of no single place, so that no owner is ever asked for."""
    return None


@dataclass(slots=True)
class PauseWatch:
    """One process's. ``steady`` (s) only goes up; the age of an answer counts from its question.

    So a write that was let through is sent within `OLDEST` of a moment at which nothing was paused.
    ``owner`` says whose a mailbox is, for pilots that name users. ``keyspace`` says whether an
    empty answer may be believed; it is asked after the pauses, so no truncation falls in between.
    With ``only_pilot`` everything waits while no pilot stands.
    """

    pauses: Pauses
    clock: Callable[[], Micros]
    steady: Callable[[], float] = time_awake_or_asleep
    owner: OwnerOf = nobodys
    keyspace: OwnKeyspace | None = None
    only_pilot: bool = False
    _known: tuple[float, tuple[Pause, ...]] = (float("-inf"), ())
    _owners: dict[UUID, tuple[float, QuotaRoot | None]] = field(default_factory=dict)

    def why(self, target: WriteTarget) -> Waiting | None:
        """Why this waits (`reconcilers.limits.pause`), None when it may be written.

        Raises `Retryable` when our keyspace does not answer: then nothing may be written either.
        """
        for _ in range(TRIES):
            if not self._asked():
                return UNKNOWN
            why = why_paused(self._in_force(), target, self.clock(), self._owner_of)
            if why is not None or self._is_fresh():  # to read an owner may take long
                return why
        return UNKNOWN

    def asked_anew(self) -> tuple[Pause, ...]:
        """Those that stand now. Raises `Retryable`."""
        self._ask()
        now = self.clock()
        return tuple(each for each in self._in_force() if each.stands(now))

    def _in_force(self) -> Iterable[Pause]:
        known = self._known[1]
        return without_pilot(known, self.clock()) if self.only_pilot else known

    def _owner_of(self, mailbox: UUID) -> QuotaRoot | None:
        now = self.steady()
        read_at, owner = self._owners.get(mailbox, (float("-inf"), None))
        if now - read_at > OWNERS_FOR:
            if len(self._owners) >= OWNERS_KNOWN:
                self._owners.clear()
            try:
                owner = self.owner(mailbox)
            except Refused as refused:
                log.warning(
                    "mailbox %s is outside the pilot, whoever's it is: %s", mailbox, refused
                )
                owner = None
            self._owners[mailbox] = now, owner
        return owner

    def _asked(self) -> bool:
        """Whether an answer is known that is young enough; asked for anew where it is not."""
        for _ in range(TRIES):
            if self._is_fresh():
                return True
            self._ask()
        return self._is_fresh()

    def _is_fresh(self) -> bool:
        return self.steady() - self._known[0] <= OLDEST

    def _ask(self) -> None:
        asked = self.steady()
        standing = self.pauses.standing()
        why = None if self.keyspace is None else self.keyspace.why()
        self._known = asked, (standing if why is None else (in_doubt(why), *standing))
