"""While events have not come: what its user kept is not removed, what he deleted is not re-added.

The stream is behind here as long as any event that is late has not come.
Each rule is shown to be needed: a driver that never says that the stream is behind breaks it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import Wait, Waiting
from tests.property.mail import SECOND, Event, Fate
from tests.property.races import Choice
from tests.property.stories import Story

BEHIND = Waiting(Wait.BEHIND, "the stream is behind")


@dataclass
class Delayed(Story):
    """A story of which some events come late; ``says`` is what the driver makes of it."""

    says: Waiting | None = BEHIND
    late: list[Event] = field(default_factory=list)

    def after(self, action: Callable[[], object], late: Callable[[Event], bool]) -> None:
        """A second passes; of the events of the action and of the second some are late."""
        events = self.world.events
        known = len(events)
        action()
        self.world.pass_time(SECOND)
        new, events[known:] = events[known:], []
        self.late += [each for each in new if late(each)]
        events += [each for each in new if not late(each)]

    def release(self) -> None:
        """What was late comes now."""
        now = self.world.now
        self.world.events += [replace(each, arrived=now) for each in self.late]
        self.late.clear()

    def look_at(self, *slots: Slot) -> None:
        """One look. What came just now has not come out of the settle window yet."""
        if not self.late:
            self.world.pass_time(2 * self.climate.delay)
        self.behind = self.says if self.late else None
        self.execute(self.batch_of(slots))

    def add(
        self, late: Callable[[Event], bool] = lambda _: False, copy_of: Slot | None = None
    ) -> Slot:
        message = None if copy_of is None else self.world.slots[copy_of]
        self.after(lambda: self.added(message), late)
        return list(self.world.slots)[-1]

    def waits(self, slot: Slot) -> bool:
        finding = self.finding(slot)
        return finding is not None and finding.waits == BEHIND


def row_of_which_the_copy_is_expunged(one: Delayed) -> Slot:
    """The range delete took both rows of the truth; nobody has heard of the copy yet."""
    first = one.add()
    one.settle()
    copy = one.add(lambda _: True, copy_of=first)
    one.after(lambda: one.expunge(copy), lambda event: event.uid is not None)
    one.look_later(first)
    return first


def test_a_kept_row_is_not_removed_before_its_copy_was_heard_of() -> None:
    one = Delayed()
    first = row_of_which_the_copy_is_expunged(one)
    assert one.is_there(first)
    assert one.waits(first)
    one.release()
    one.look_at(first)
    assert one.is_there(first)
    assert one.kind_reported(first) is Kind.AMBIGUOUS_RANGE_DELETE


def test_unless_that_waits_it_is_removed() -> None:
    one = Delayed(says=None)
    assert not one.is_there(row_of_which_the_copy_is_expunged(one))


def test_an_orphan_that_waited_is_removed_when_all_has_come() -> None:
    one = Delayed()
    first = one.add()
    one.settle()
    one.after(lambda: one.expunge(first, Fate.LOST), lambda _: False)
    one.add(lambda _: True)
    one.look_later(first)
    assert one.waits(first)
    one.release()
    one.look_at(first)
    assert not one.is_there(first)


def row_that_outlived_its_delete(one: Delayed) -> Slot:
    """The truth's clock is ahead; of both deletes only the projection's was heard."""
    one.world.ballot_ahead = 3 * SECOND
    slot = one.add()
    one.after(lambda: one.expunge(slot), lambda event: event.uid is None)
    one.look_later(slot)
    return slot


def test_a_deleted_row_is_not_re_added_before_the_truths_delete_was_heard_of() -> None:
    one = Delayed()
    slot = row_that_outlived_its_delete(one)
    assert not one.is_there(slot)
    assert one.waits(slot)
    one.release()
    one.look_at(slot)
    assert not one.is_there(slot)
    assert one.kind_reported(slot) is Kind.SHADOWED_DELETE


def test_unless_that_waits_it_is_re_added() -> None:
    one = Delayed(says=None)
    assert one.is_there(row_that_outlived_its_delete(one))


# --- any order of mail, looks and late events ----------------------------------------------------


def play(script: Sequence[Choice], says: Waiting | None = BEHIND) -> None:
    """Copies and expunges within a mailbox, of which any event may be late; then all comes."""
    one = Delayed(says=says)
    world = one.world
    one.add()
    for choice, number, which in script:
        slots = list(world.slots)
        slot = slots[number % len(slots)]
        late = LATE[which]
        match choice:
            case 0:
                one.add(late, copy_of=slot)
            case 1 | 2 if not world.sees(slot):
                pass
            case 1 | 2:
                fate = (Fate.PROMPT, Fate.LOST)[choice % 2]
                one.after(partial(one.expunge, slot, fate), late)
            case 3:
                one.release()
            case _:
                one.settle()
                one.look_at(*slots)
        one.only_expunged_rows_were_removed()
    one.release()
    for _ in range(3):
        one.look_at(*world.slots)
    one.only_expunged_rows_were_removed()


LATE: tuple[Callable[[Event], bool], ...] = (
    lambda event: False,
    lambda event: event.deleted_at is None,
    lambda event: event.uid is not None,
    lambda event: True,
)
"""Nothing, what is written, what names a UID (all but the truth's delete), everything."""
CHOICES = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, len(LATE) - 1))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(CHOICES, max_size=14))
def test_whatever_is_late_only_expunged_rows_are_removed(script: list[Choice]) -> None:
    play(script)


def play_all(says: Waiting | None) -> None:
    for seed in range(300):
        draw = random.Random(seed)
        drawn = [(draw.randrange(6), draw.randrange(4), draw.randrange(4)) for _ in range(14)]
        play(drawn, says)


def test_a_driver_that_is_never_behind_is_noticed() -> None:
    with pytest.raises(AssertionError, match="evidence"):
        play_all(says=None)
