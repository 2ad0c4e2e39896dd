"""Changes whose counters may not be written yet, though they came out long ago. Pure.

James copies, moves, expunges or flags a list of messages row by row, and writes the counters of
their mailbox **once, at the end** of the command. So the first rows of a command come out of the
settle window while it is still running: a copy of 100,000 mails takes minutes. A command on a few
messages ends within the delay. Where many have come out within L before a look, any of them may be
of a command that has not ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

MANY = 100
"""A command that makes no more changes than these ends within the delay."""


@dataclass(frozen=True, slots=True)
class Past:
    """How many changes of each mailbox came out within L before a look.

    Not ``complete`` when nobody has counted them for so long.
    """

    changes: Mapping[UUID, int] = field(default_factory=dict)
    complete: bool = True


def under_way(past: Past, since: Mapping[UUID, int]) -> int | None:
    """How many changes may be under way (c), given those that came out ``since`` the look.

    None when that cannot be told.
    """
    late = [box for box in {*past.changes, *since} if _all(past, since, box) > MANY]
    if late and not past.complete:
        return None
    return sum(since.values()) + sum(past.changes.get(box, 0) for box in late)


def _all(past: Past, since: Mapping[UUID, int], mailboxid: UUID) -> int:
    return past.changes.get(mailboxid, 0) + since.get(mailboxid, 0)
