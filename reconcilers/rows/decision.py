"""What a person decides on a finding, and what the decision covers. Pure."""

from __future__ import annotations

from dataclasses import replace

from reconcilers.rows.acceptance import Accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Micros, Row
from reconcilers.words.waiting import Wait, Waiting

LOOKED_AT_NEXT = Waiting(Wait.LOOK, "")
"""The wait of a finding that a person has released; its sentence says who and why."""


def retried(finding: Finding, now: Micros) -> Finding:
    """The finding after `findings --retry`: the next look judges it again.

    A finding that is only reported keeps its state, and is looked at now. One that its table alone
    refuses keeps that wait; otherwise its next refusal would park the table.
    """
    if finding.state is State.REPORTED and finding.kind is not Kind.UNREADABLE:
        return replace(finding, next_look=now)
    refused_alone = finding.waits is not None and finding.waits.wait is Wait.ROW
    return replace(
        finding,
        state=State.HELD,
        waits=finding.waits if refused_alone else LOOKED_AT_NEXT,
        attempts=0,
        writes=(),
        before=None,
        next_look=now,
    )


REMOVALS = frozenset(
    {
        Kind.EXTRA_ROW,
        Kind.AMBIGUOUS_RANGE_DELETE,
        Kind.ABSENT_WITHOUT_DELETE,
        Kind.CONTENT_LOST,
        Kind.MAILBOX_WITHOUT_TRUTH,
    }
)
ACCEPTABLE = frozenset(
    {
        Kind.AMBIGUOUS_RANGE_DELETE,
        Kind.ABSENT_WITHOUT_DELETE,
        Kind.CONTENT_LOST,
        Kind.SHADOWED_DELETE,
        Kind.MAILBOX_WITHOUT_TRUTH,
        Kind.LARGE_CORRECTION,
        Kind.SYSTEMATIC,
        Kind.TRUTH_LOST_ROWS,
        Kind.PAST_ROWS,
    }
)
"""The kinds that a person may accept with ``findings --accept``."""
OF_MANY_ROWS = frozenset({Kind.SYSTEMATIC, Kind.TRUTH_LOST_ROWS, Kind.PAST_ROWS})
"""The kinds of a sweep's findings that stand for many rows. No key is looked at for them."""


def decided(finding: Finding | None, row: Row | None, now: Micros) -> frozenset[Kind]:
    """The kinds that a person has accepted for an open finding; another kind asks again.

    So does a ``row`` that was written after that; ``now`` is µs.
    """
    if finding is None or finding.is_of_older(row, now):
        return frozenset()
    return finding.accepted_kinds


def accepted(finding: Finding, now: Micros) -> Finding:
    """The finding after `findings --accept`; for many rows it covers those counted by then."""
    many = finding.kind in OF_MANY_ROWS
    given = Accepted(finding.reason, finding.found_at, finding.tried_at if many else now)
    return replace(
        finding,
        accepted=finding.accepted | {given},
        next_look=finding.next_look if many else now,
    )
