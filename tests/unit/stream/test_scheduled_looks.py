"""Looks that are due later: after the expiry of a cell, or spread over two periods."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from checkpoints.expiries import Expiry
from reconcilers.words.model import EXPIRED, NO_PROJECTION, Micros, Slot, Wake
from streaming.pipeline.scheduled_looks import looks_after_expiry, scheduled_wake, spread
from tests.builders.rows import DELAY, MAILBOX, MESSAGE_ID, NOW, SECOND, SLOT

EXPIRES = NOW + 3600 * SECOND
WITH_TTL = Wake((MAILBOX, 7), MESSAGE_ID, oldest=NOW, expires_at=EXPIRES)


def test_a_cell_that_expires_is_looked_at_two_delays_later() -> None:
    assert list(looks_after_expiry([WITH_TTL], NOW, DELAY)) == [
        Expiry(SLOT, MESSAGE_ID, EXPIRES + 2 * DELAY)
    ]


@pytest.mark.parametrize(
    ("expires", "later"),
    [(NOW, True), (NOW - DELAY + 1, True), (NOW - DELAY, False), (NOW - DELAY - 1, False)],
)
def test_what_has_expired_by_any_clock_needs_no_later_look(expires: Micros, *, later: bool) -> None:
    """A node's clock may be a delay behind ours."""
    found = list(looks_after_expiry([replace(WITH_TTL, expires_at=expires)], NOW, DELAY))
    assert bool(found) is later


def test_a_wake_without_a_ttl_or_a_row_is_passed_over_and_the_others_are_not() -> None:
    wakes = [
        replace(WITH_TTL, expires_at=None),
        replace(WITH_TTL, key=(None, 7)),
        replace(WITH_TTL, key=(MAILBOX, None)),
        replace(WITH_TTL, key=(MAILBOX, 0), source=None),
    ]
    due = EXPIRES + 2 * DELAY
    assert list(looks_after_expiry(wakes, NOW, DELAY)) == [Expiry(Slot(MAILBOX, 0), None, due)]


def test_slots_are_spread_over_the_period() -> None:
    every = 600 * SECOND
    times = {spread(Slot(UUID(int=number), number), NOW, every) for number in range(1000)}
    thirds = {(at - NOW - every) * 3 // every for at in times}
    assert thirds == {0, 1, 2}
    assert len(times) > 900


def test_a_scheduled_look_confirms_only_what_differs() -> None:
    due = EXPIRES + 2 * DELAY
    wake = Wake((MAILBOX, 7), None, oldest=due, looked_again=True, projection=NO_PROJECTION)
    assert scheduled_wake(Expiry(SLOT, None, due)) == wake
    assert scheduled_wake(Expiry(SLOT, MESSAGE_ID, due)) == replace(
        wake, source=MESSAGE_ID, deleted_from=EXPIRED, deleted_at=due
    )
