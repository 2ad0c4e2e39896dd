"""``reconcile findings --unused-flags``: lists flags that `applicableFlag` could lose.

No event reports that the last message has lost a flag, so both sides are read when a person asks.
Nothing is removed: a client may still offer such a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol
from uuid import UUID

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.projections.applicable_flags import APPLICABLE_FLAGS
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Micros, Slot
from streaming.settings import Settings
from streaming.tables import CollectedFlags, connect

NO_UID = 0


class Gathered(Protocol):
    """The rows to read; `streaming.tables.CollectedFlags` is the real one."""

    def rows(self, mailboxid: UUID | None) -> Iterator[tuple[UUID, frozenset[str]]]:
        """The flags that each mailbox offers, of one mailbox or all."""

    def in_use(self, mailboxid: UUID) -> frozenset[str]:
        """The flags of all messages of a mailbox."""


def unused_flags(
    gathered: Gathered, mailboxid: UUID | None, clock: Callable[[], Micros]
) -> Iterator[Finding]:
    """A finding for each mailbox that offers a flag which none of its messages has."""
    for each, offered in gathered.rows(mailboxid):
        unused = offered - gathered.in_use(each) if offered else offered
        if unused:
            yield Finding(
                family=MESSAGE.name,
                projection=APPLICABLE_FLAGS.name,
                slot=Slot(each, NO_UID),
                source=None,
                kind=Kind.UNUSED_FLAGS,
                state=State.REPORTED,
                sentence=f"no message of the mailbox has {', '.join(sorted(unused))}, which its"
                " applicable flags offer; only a report, as it is now",
                found_at=clock(),
            )


def collected_flags_of(settings: Settings) -> CollectedFlags:
    """Reads James's tables. Raises `Unreachable`, `Refused`."""
    session = connect(settings.cassandra)
    return CollectedFlags(session, settings.cassandra, MESSAGE, APPLICABLE_FLAGS)
