"""Step 5: the evidence for a removal, row by row of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.rows.confirm import judge
from reconcilers.rows.evidence import evidence_for_removal
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Kind,
    LookAgain,
    Micros,
    Repair,
    Report,
    Row,
    Slot,
)
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MOMENT,
    NOW,
    PROJECTION,
    SECOND,
    partial,
    row,
    seen,
    truth,
)
from tests.builders.slots import slots
from tests.unit.rows.test_confirm import ITS_DELETE_HEARD, KNOWN_WHOLE, reported, times, verdict

EVIDENCE = {
    "its projection row was deleted": (Memory(projection_deletes=times(100)), set()),
    "a truth delete named its UID": (Memory(row_deletes=times(100)), set()),
    "the truth never had it": (Memory(slots(8), complete_at=LONG_AGO - 1), {8}),
    "the truth never had it, others were deleted": (
        Memory(slots(8), complete_at=LONG_AGO - 1, range_deletes=times(100)),
        set(),
    ),
    "the truth never had it since the message was born": (Memory(complete_at=0), set()),
    "another was deleted before it was written": (
        Memory(
            slots(7, 8),
            complete_at=LONG_AGO - 3 * DELAY,
            listing_known_at=0,
            range_deletes=frozenset({LONG_AGO - 2 * DELAY - 1}) | times(100),
            sibling_deletes={Slot(MAILBOX, 8): frozenset({LONG_AGO - 2 * DELAY - 1})},
        ),
        set(),
    ),
    "one delete came since the memory was complete": (
        Memory(
            slots(7),
            complete_at=NOW - 150 * SECOND,
            range_deletes=times(200, 100),
            listing_known_at=0,
        ),
        set(),
    ),
    "it alone was lost since the listing was read": (
        Memory(
            slots(7),
            complete_at=LONG_AGO,
            listing_known_at=NOW - 100 * SECOND - 1,
            range_deletes=times(100, 99),
        ),
        set(),
    ),
    "it alone was lost": (
        Memory(slots(7), complete_at=LONG_AGO, range_deletes=times(100), listing_known_at=0),
        set(),
    ),
    "it alone was lost, another is there": (
        Memory(slots(7, 8), complete_at=LONG_AGO, range_deletes=times(100), listing_known_at=0),
        {8},
    ),
}
NO_EVIDENCE = {
    "it alone was lost, but the listing may have had another": (
        Memory(slots(7), complete_at=LONG_AGO, range_deletes=times(100)),
        set(),
    ),
    "it alone was lost, perhaps before the listing was read": (
        Memory(
            slots(7),
            complete_at=LONG_AGO,
            listing_known_at=NOW - 100 * SECOND,
            range_deletes=times(100, 99),
        ),
        set(),
    ),
    "another was deleted as often as its own row": (
        Memory(
            slots(7, 8),
            complete_at=LONG_AGO,
            listing_known_at=0,
            range_deletes=times(100, 99),
            sibling_deletes={Slot(MAILBOX, 8): times(100)},
        ),
        set(),
    ),
    "as many deletes as were lost": (
        Memory(slots(7, 8), complete_at=LONG_AGO, listing_known_at=0, range_deletes=times(100, 99)),
        set(),
    ),
    "as many deletes since the memory was complete": (
        Memory(
            slots(7, 8),
            complete_at=NOW - 150 * SECOND,
            listing_known_at=0,
            range_deletes=times(200, 100, 99),
        ),
        set(),
    ),
    "another was deleted when it may have been written": (
        Memory(
            slots(7, 8),
            complete_at=LONG_AGO - 3 * DELAY,
            listing_known_at=0,
            range_deletes=frozenset({LONG_AGO - 2 * DELAY}) | times(100),
            sibling_deletes={Slot(MAILBOX, 8): frozenset({LONG_AGO - 2 * DELAY})},
        ),
        set(),
    ),
    "another is there again, though its delete was heard": (
        Memory(
            slots(7, 8),
            complete_at=LONG_AGO,
            listing_known_at=0,
            range_deletes=times(100, 99),
            sibling_deletes={Slot(MAILBOX, 8): times(99)},
        ),
        {8},
    ),
    "not in the memory, and written at the very µs of it": (
        Memory(slots(8), complete_at=LONG_AGO),
        {8},
    ),
    "not in the memory, and older than it": (
        Memory(slots(8), complete_at=LONG_AGO + 1),
        {8},
    ),
    "two deletes, both for the other": (
        Memory(
            slots(7, 8),
            complete_at=LONG_AGO,
            listing_known_at=0,
            range_deletes=times(100, 99),
            sibling_deletes={Slot(MAILBOX, 8): times(100, 99)},
        ),
        set(),
    ),
    "nothing remembered": (Memory(), set()),
    "memory not complete, one delete": (
        Memory(slots(7), range_deletes=times(100)),
        set(),
    ),
    "complete only after the delete": (
        Memory(slots(7), complete_at=NOW - 100 * SECOND, range_deletes=times(100)),
        set(),
    ),
    "another was lost": (
        Memory(slots(7, 8), complete_at=LONG_AGO, listing_known_at=0, range_deletes=times(100)),
        set(),
    ),
    "another is lost by what the projection told": (
        Memory(slots(7), slots(8), complete_at=LONG_AGO, range_deletes=times(100)),
        set(),
    ),
    "two deletes for three": (
        Memory(slots(7, 8, 9), complete_at=LONG_AGO, range_deletes=times(100, 99)),
        set(),
    ),
    "deletes before the memory was complete do not count": (
        Memory(
            slots(7, 8),
            complete_at=NOW - 150 * SECOND,
            listing_known_at=0,
            range_deletes=times(200, 100),
        ),
        set(),
    ),
    "not in the memory, which was complete only after a delete": (
        Memory(slots(8), complete_at=LONG_AGO - 1, range_deletes=frozenset({LONG_AGO - 2})),
        {8},
    ),
    "never known in the truth, but the memory is not complete": (
        Memory(slots(8), range_deletes=times(100)),
        {8},
    ),
}


HEARD = {"its projection row was deleted", "a truth delete named its UID"}


@pytest.mark.parametrize("case", EVIDENCE)
def test_an_orphan_with_evidence_is_removed(case: str) -> None:
    memory, present = EVIDENCE[case]
    one = seen(row(), memory=memory, present=slots(*present))
    answer = verdict(one)
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory is (case not in HEARD)
    reason = evidence_for_removal(FAMILY, one, DELAY)
    assert reason is not None


DECIDED = frozenset({Kind.AMBIGUOUS_RANGE_DELETE, Kind.SHADOWED_DELETE})
NEAR = frozenset({LONG_AGO + SECOND})
RE_ADDED = {
    # what is remembered of the missing row; whether adding it rests on that
    "no delete was heard": (Memory(slots(7)), False),
    "a delete of the truth an hour later": (Memory(range_deletes=times(0)), False),
    "its own delete in the projection": (Memory(projection_deletes=times(0)), True),
    "a near delete that took another row": (Memory(slots(1, 7), range_deletes=NEAR), True),
}


@pytest.mark.parametrize("case", RE_ADDED)
def test_a_row_near_a_delete_is_re_added_by_what_memory_says(case: str) -> None:
    memory, on_memory = RE_ADDED[case]
    answer = verdict(seen(None, truth(at=LONG_AGO), memory=memory))
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory is on_memory


@pytest.mark.parametrize(
    "one",
    [
        seen(row(), memory=Memory(slots(7, 8), range_deletes=times(100))),
        seen(None, truth(at=LONG_AGO), memory=Memory(range_deletes=NEAR)),
        seen(None, truth(at=LONG_AGO), memory=Memory(projection_deletes=NEAR)),
    ],
)
def test_what_a_person_has_accepted_rests_on_that(one: Seen) -> None:
    answer = verdict(one, DECIDED)
    assert isinstance(answer, Repair)
    assert not answer.rests_on_memory


def test_a_row_that_is_there_is_corrected_by_what_is_read() -> None:
    memory = Memory(projection_deletes=NEAR, range_deletes=NEAR)
    answer = verdict(seen(row(flagseen=False), truth(), memory=memory))
    assert isinstance(answer, Repair)
    assert not answer.rests_on_memory


@pytest.mark.parametrize(("memory", "present"), NO_EVIDENCE.values(), ids=NO_EVIDENCE.keys())
def test_an_orphan_without_evidence_is_kept(memory: Memory, present: set[int]) -> None:
    one = seen(row(), memory=memory, present=slots(*present))
    assert evidence_for_removal(FAMILY, one, DELAY) is None
    assert reported(one) is Kind.AMBIGUOUS_RANGE_DELETE


LATE = replace(MOMENT, frontier=MOMENT.began - 200 * SECOND)
UNKNOWN = Memory(slots(8), complete_at=LONG_AGO - 1)


@pytest.mark.parametrize("after", [0, 1])
def test_what_the_truth_never_had_is_known_once_all_of_before_the_row_has_come(after: int) -> None:
    """Its oldest cell counts: an event of the truth came with that one."""
    written = {"modseq": LATE.heard_until + after, "flagseen": LATE.heard_until + 9}
    orphan = row(at=LATE.heard_until + 9, written=written)
    one = replace(seen(orphan, memory=UNKNOWN), suspected=Kind.EXTRA_ROW)
    assert isinstance(judge(FAMILY, PROJECTION, one, LATE), LookAgain if after else Repair)


@pytest.mark.parametrize("after", [0, 1])
def test_a_row_of_no_known_message_waits_for_all_of_before_it_too(after: int) -> None:
    nameless = seen(partial(flagseen=True, at=LATE.heard_until + after), consulted=frozenset())
    one = replace(nameless, suspected=Kind.EXTRA_ROW, swept=True)
    assert isinstance(judge(FAMILY, PROJECTION, one, LATE), LookAgain if after else Repair)


@pytest.mark.parametrize(("later", "answer"), [(0, Repair), (-1, LookAgain), (1, Repair)])
def test_what_has_come_is_known_up_to_the_frontier(later: int, answer: type) -> None:
    """What has come since then is not: it may have been silent from then on."""
    at_once = replace(LATE, frontier=LATE.began)
    assert at_once.heard_until == replace(LATE, frontier=LATE.began + 9).heard_until
    moment = replace(LATE, frontier=LATE.began - 20 * SECOND + later)
    orphan = row(at=moment.began - 20 * SECOND - DELAY)
    one = replace(seen(orphan, memory=UNKNOWN), suspected=Kind.EXTRA_ROW)
    assert isinstance(judge(FAMILY, PROJECTION, one, moment), answer)


def test_a_delete_that_named_its_row_is_not_waited_for() -> None:
    memory = replace(UNKNOWN, projection_deletes=frozenset({LATE.heard_until + 2}))
    orphan = row(at=LATE.heard_until + 1)
    one = replace(seen(orphan, memory=memory), suspected=Kind.EXTRA_ROW)
    assert isinstance(judge(FAMILY, PROJECTION, one, LATE), Repair)


@pytest.mark.parametrize(("after", "evidence"), [(0, False), (1, True)], ids=["at", "after"])
def test_memory_counts_for_a_row_whose_oldest_cell_is_newer(after: Micros, evidence: bool) -> None:
    """Its other cells were written later still: a flag set yesterday says nothing of its birth."""
    young = row(at=LONG_AGO + DELAY, written={"modseq": LONG_AGO + after})
    one = seen(young, memory=Memory(complete_at=LONG_AGO))
    assert (evidence_for_removal(FAMILY, one, DELAY) is not None) is evidence


def test_memory_of_all_its_life_counts_for_a_row_of_any_age() -> None:
    one = seen(Row({"mailboxid": MAILBOX, "uid": 7}), memory=Memory(complete_at=0))
    assert evidence_for_removal(FAMILY, one, DELAY) == "the truth never had this UID"


def test_memory_never_counts_for_a_row_whose_age_is_unknown() -> None:
    keys = Row({"mailboxid": MAILBOX, "uid": 7})
    for actual in (keys, None):
        one = seen(actual, memory=Memory(complete_at=LONG_AGO))
        assert evidence_for_removal(FAMILY, one, DELAY) is None


def test_an_absence_without_a_delete_is_judged_only_when_it_is_a_delay_old() -> None:
    known = seen(row(), memory=KNOWN_WHOLE)
    assert isinstance(verdict(known), Report)
    assert isinstance(verdict(replace(known, suspected=None)), LookAgain)
    heard = replace(KNOWN_WHOLE, range_deletes=times(100))
    assert isinstance(verdict(replace(known, suspected=None, memory=heard)), Repair)
    older = replace(KNOWN_WHOLE, range_deletes=frozenset({LONG_AGO - 3 * DELAY}))
    assert isinstance(verdict(replace(known, suspected=None, memory=older)), LookAgain)


def test_the_sentence_of_a_removal_gives_the_evidence() -> None:
    answer = verdict(seen(row(), memory=ITS_DELETE_HEARD))
    assert isinstance(answer, Repair)
    assert answer.sentence.endswith("no other UID of the message was lost in this mailbox")
