"""Changes whose counters James may not have written yet, long after their events. Pure.

James copies, moves, expunges or flags a list of messages row by row. It writes the counters of
their mailbox **once, at the end** of the command. A copy of 100,000 mails takes minutes, so its
first rows are released from the window before its end. A command on a few messages ends within the
delay. If many changes were released within L before a look, any of them may be of a running
command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

MANY = 100
"""A command with no more changes than this ends within the delay."""


@dataclass(frozen=True, slots=True)
class Past:
    """The changes by mailbox released within L before a look; ``complete`` if all were counted."""

    changes: Mapping[UUID, int] = field(default_factory=dict)
    complete: bool = True


def under_way(past: Past, since: Mapping[UUID, int]) -> int | None:
    """The number of changes that may be in flight (c) with those ``since``; None if unknown."""
    late = [box for box in {*past.changes, *since} if _all(past, since, box) > MANY]
    if late and not past.complete:
        return None
    return sum(since.values()) + sum(past.changes.get(box, 0) for box in late)


def _all(past: Past, since: Mapping[UUID, int], mailboxid: UUID) -> int:
    return past.changes.get(mailboxid, 0) + since.get(mailboxid, 0)
