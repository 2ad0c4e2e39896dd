"""Whether a person has paused repairs: read before each write, at most one second old."""

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
"""How old (s) an answer may be when a write is sent."""
TRIES = 2
OWNERS_FOR = 60.0
"""How long (s) a mailbox's owner is believed before it is read again."""
OWNERS_KNOWN = 100_000
"""Mailboxes whose owner is kept in memory."""
UNKNOWN = Waiting(
    Wait.PAUSES_UNKNOWN,
    "whether repairs are paused is not known: our keyspace takes longer than a second",
)


def nobodys(_mailbox: UUID) -> QuotaRoot | None:
    """No owner, for processes that ask about no single mailbox."""
    return None


@dataclass(slots=True)
class PauseWatch:
    """The pauses as one process sees them; an answer's age counts from its request.

    A write that is let through is therefore sent within `OLDEST` of a moment without a pause.
    ``steady`` is the monotonic clock (s). ``owner`` returns a mailbox's user, for pilots that name
    users. ``keyspace`` says whether an empty answer may be believed; it is read after the pauses,
    so that no truncation falls in between. With ``only_pilot`` all writes wait while there is no
    pilot.
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
        """Why this write waits (`reconcilers.limits.pause`), None if it may be sent.

        Raises `Retryable` if our keyspace does not answer: nothing may be written then either.
        """
        for _ in range(TRIES):
            if not self._asked():
                return UNKNOWN
            why = why_paused(self._in_force(), target, self.clock(), self._owner_of)
            if why is not None or self._is_fresh():  # reading an owner may take long
                return why
        return UNKNOWN

    def asked_anew(self) -> tuple[Pause, ...]:
        """The pauses that stand now, read again. Raises `Retryable`."""
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
                    "mailbox %s is outside the pilot, since its owner cannot be read: %s",
                    mailbox,
                    refused,
                )
                owner = None
            self._owners[mailbox] = now, owner
        return owner

    def _asked(self) -> bool:
        """Whether an answer is young enough; it is read again if not."""
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
