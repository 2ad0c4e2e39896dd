"""Changes whose counters James may not have written yet, long after their events. Pure.

James copies, moves, expunges or flags a list of messages row by row. It writes the counters of
their mailbox **once, at the end** of the command. A copy of 100,000 mails takes minutes, so its
first rows are released from the window before its end. A command on a few messages ends within the
delay. If many changes were released within L before a look, any of them may be of a running
command. A process does not know what was released before its start, so it observes nothing in its
first L.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

MANY = 100
"""A command with no more changes than this ends within the delay."""


def under_way(past: Mapping[UUID, int], since: Mapping[UUID, int]) -> int:
    """The number of changes that may be in flight (c), by those of each mailbox.

    Those of ``past`` were released within L before a look, the others ``since`` then.
    """
    late = [box for box, changes in past.items() if changes + since.get(box, 0) > MANY]
    return sum(since.values()) + sum(past[box] for box in late)
