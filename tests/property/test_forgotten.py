"""What is forgotten with time makes no riddle solvable: what was reported is not removed later.

Deletes are kept for a time, rows for good: so a row that was reported because of a delete could be
removed once the delete is forgotten.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Slot
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.property.mail import SECOND, Fate
from tests.property.seeded import played
from tests.property.stories import INBOX, Story

KINDS: tuple[tuple[type, ...], ...] = (
    (TruthDelete, ProjectionDelete, Entry),
    (ProjectionDelete,),
    (TruthDelete,),
    (Entry,),
)


def look(run: Story, times: int = 1) -> None:
    for _ in range(times):
        run.settle()
        run.execute(run.batch_of(list(run.world.slots)))
        run.world.pass_time(SECOND)


def added(run: Story, copy_of: Slot | None = None) -> Slot:
    slot = run.added(run.world.old_message()) if copy_of is None else run.copied(copy_of)
    run.world.pass_time(SECOND)
    return slot


def expunge(run: Story, slot: Slot, fate: Fate = Fate.PROMPT) -> None:
    run.expunge(slot, fate)
    run.world.pass_time(SECOND)


def is_reported(run: Story, slot: Slot) -> bool:
    finding = run.finding(slot)
    return finding is not None and finding.state in (State.REPORTED, State.HELD)


def test_a_delete_from_before_memory_was_whole_is_not_forgotten(run: Story) -> None:
    first = added(run)
    run.settle()
    run.world.events.clear()  # nobody has heard of the row
    expunge(run, first)
    again = added(run, first)
    look(run)  # the message's truth is read after that delete: memory was made from what it left
    run.lose_true(again)
    look(run, times=2)
    assert is_reported(run, again)
    run.kept.lineage.forget()
    look(run, times=2)
    assert run.row(again) is not None


def two_sessions_expunge_the_copy(run: Story) -> Slot:
    first = added(run)
    copy = added(run, first)
    look(run)
    expunge(run, copy)
    expunge(run, copy)
    look(run, times=2)
    return first


@pytest.mark.parametrize("kinds", KINDS)
def test_deletes_of_other_rows_are_not_forgotten_before_those_of_the_truth(
    run: Story, kinds: tuple[type, ...]
) -> None:
    first = two_sessions_expunge_the_copy(run)
    assert is_reported(run, first)
    run.kept.lineage.forget(kinds)
    look(run, times=2)
    assert run.row(first) is not None
    assert is_reported(run, first)


def test_a_row_that_outlived_its_delete_is_not_added_when_that_is_forgotten(run: Story) -> None:
    run.world.ballot_ahead = 3 * SECOND
    slot = added(run)
    expunge(run, slot)
    look(run)
    assert run.row(slot) is None
    assert is_reported(run, slot)
    run.kept.lineage.forget()
    look(run, times=2)
    assert run.row(slot) is None
    assert is_reported(run, slot)


def test_deletes_of_what_is_gone_are_forgotten(run: Story) -> None:
    slot = added(run)
    message, mailbox = run.world.slots[slot], INBOX
    look(run)
    expunge(run, slot)
    look(run)
    lineage = run.kept.lineage
    assert lineage.truth_deletes(message, mailbox).ranges
    lineage.forget()
    assert not lineage.truth_deletes(message, mailbox).ranges
    assert not lineage.projection_deletes(slot).ends
    assert not lineage.of_sources([message])


# --- any order of mail, looks and forgetting ------------------------------------------------------

Choice = tuple[int, int]


def play(script: Sequence[Choice]) -> None:
    """Nothing that waited for a person is removed after something was forgotten."""
    run = Story()
    added(run)
    for choice, number in script:
        slots = list(run.world.slots)
        slot = slots[number % len(slots)]
        match choice:
            case 0:
                added(run, copy_of=slot)
            case 1 | 2:
                expunge(run, slot, (Fate.PROMPT, Fate.LOST)[choice % 2])
            case 3:
                run.lose_true(slot)
            case 4:
                look(run)
            case _:
                look(run, times=2)
                waiting = [each for each in slots if is_reported(run, each)]
                run.kept.lineage.forget(KINDS[number % len(KINDS)])
                look(run, times=2)
                gone = [each for each in waiting if run.row(each) is None]
                assert not gone, f"forgotten: {gone} were removed, and had been reported"


def play_drawn(seed: int) -> None:
    draw = random.Random(seed)
    play([(draw.randrange(7), draw.randrange(8)) for _ in range(16)])


def test_what_waits_for_a_person_is_not_removed_when_deletes_are_forgotten() -> None:
    for _ in played(play_drawn, range(300)):
        pass


def test_lineage_that_forgets_every_delete_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryLineage, "keep_deletes", lambda self, slots: None)
    # held all the same, as absent without a delete, and because another row was lost
    test_a_delete_from_before_memory_was_whole_is_not_forgotten(Story())
    test_deletes_of_other_rows_are_not_forgotten_before_those_of_the_truth(Story(), KINDS[1])
    with pytest.raises(AssertionError):
        test_a_row_that_outlived_its_delete_is_not_added_when_that_is_forgotten(Story())
