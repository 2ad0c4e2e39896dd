"""What is decided of `SLOT`, and what may be remembered of its message."""

from __future__ import annotations

from dataclasses import replace

from reconcilers.rows.confirm import judge
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, Micros, Report, Verdict
from tests.builders.rows import FAMILY, LONG_AGO, MOMENT, NOW, PROJECTION, SECOND
from tests.builders.slots import slots


def verdict(one: Seen, accepted: frozenset[Kind] = frozenset()) -> Verdict:
    """In the listing, at `MOMENT`."""
    return judge(FAMILY, PROJECTION, one, MOMENT, accepted)


def reported(one: Seen) -> Kind | None:
    """The class under which it waits for a person."""
    answer = verdict(one)
    return answer.kind if isinstance(answer, Report) else None


def times(*seconds_ago: int) -> frozenset[Micros]:
    """Times of deletes."""
    return frozenset(NOW - ago * SECOND for ago in seconds_ago)


KNOWN_WHOLE = Memory(known=slots(7), complete_at=LONG_AGO, listing_known_at=0)
"""Its message has had this row alone."""
ITS_DELETE_HEARD = replace(KNOWN_WHOLE, range_deletes=times(100))
NEAR = frozenset({LONG_AGO})
"""A delete at the time when rows of these tests are written."""
