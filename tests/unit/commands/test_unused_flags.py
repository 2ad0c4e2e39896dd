"""``reconcile findings --unused-flags``: flags that a mailbox offers and no message has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.rows.finding import State
from reconcilers.words.model import Kind, Slot
from streaming.commands.person.unused_flags import unused_flags
from tests.builders.rows import MAILBOX, NOW

OTHER, EMPTY = UUID(int=2), UUID(int=3)


@dataclass
class Gathered:
    """Rows and messages in memory; ``asked`` are the mailboxes whose messages were read."""

    asked: list[UUID] = field(default_factory=list)

    def rows(self, mailboxid: UUID | None) -> Iterator[tuple[UUID, frozenset[str]]]:
        offered = {
            MAILBOX: frozenset({"work", "stale", "old"}),
            OTHER: frozenset({"work"}),
            EMPTY: frozenset[str](),
        }
        yield from ((each, flags) for each, flags in offered.items() if mailboxid in (None, each))

    def in_use(self, mailboxid: UUID) -> frozenset[str]:
        self.asked.append(mailboxid)
        return frozenset({"work", "not offered"})


def test_what_no_message_has_is_told_by_mailbox() -> None:
    (only,) = unused_flags(Gathered(), None, lambda: NOW)
    assert only.slot == Slot(MAILBOX, 0)
    assert (only.kind, only.state) == (Kind.UNUSED_FLAGS, State.REPORTED)
    assert "no message of the mailbox has old, stale," in only.sentence


def test_one_mailbox_may_be_named() -> None:
    gathered = Gathered()
    assert list(unused_flags(gathered, OTHER, lambda: NOW)) == []
    assert gathered.asked == [OTHER]


def test_where_nothing_is_offered_no_message_is_read() -> None:
    gathered = Gathered()
    list(unused_flags(gathered, None, lambda: NOW))
    assert EMPTY not in gathered.asked
