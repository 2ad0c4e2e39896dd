"""Step 5: the evidence for a removal and for adding a row again, row by row of two tables."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

import pytest

from reconcilers.rows.confirm import judge
from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.rows.evidence import (
    ContentFound,
    asks_for_content,
    by_content,
    evidence_for_removal,
    heard_since_written,
)
from reconcilers.rows.memory import NOTHING_REMEMBERED, Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, LookAgain, Micros, Repair, Report, Row, Slot
from tests.builders.judging import (
    ITS_DELETE_HEARD,
    KNOWN_WHOLE,
    NEAR,
    reported,
    times,
    verdict,
)
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
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

Outcome = TypeVar("Outcome")

# --- the rules, as docs/lineage.md numbers them ---------------------------------------------------


class Rule(Enum):
    """By which rule an orphan is removed, or why it stays; with the words of its sentence."""

    ITS_DELETE = "a delete of this very row was seen"
    NEVER_HAD = "the truth never had this UID"
    ALONE_LOST = "no other UID of the message was lost in this mailbox"
    CONTENT_GONE = "a delete of its message here was received, and the message's content is gone"
    LAST_TRACE = f"the content of message {MESSAGE_ID} is gone"
    NO_DELETE = "no delete of the message in this mailbox was received"


AT_ONCE = {Rule.ITS_DELETE, Rule.NEVER_HAD, Rule.ALONE_LOST}
ITS, NEVER, ALONE, GONE, TRACE, NO_DELETE = Rule

EIGHT = Slot(MAILBOX, 8)
ONCE, TWICE = times(100), times(100, 99)
OF_ANOTHER_ROW = frozenset({LONG_AGO - 2 * DELAY - 1})
"""A delete that is too old to have meant a row which is written `LONG_AGO`."""
PERHAPS_ITS_OWN = frozenset({LONG_AGO - 2 * DELAY})
HALFWAY = NOW - 150 * SECOND
"""Between two of the deletes."""


def one(**known: Any) -> Memory:
    """The message has had this row alone, unless told otherwise."""
    return replace(KNOWN_WHOLE, **known)


def two(**known: Any) -> Memory:
    """It has had UID 8, too."""
    return one(known=slots(7, 8), **known)


def not_it(complete_at: Micros | None = LONG_AGO - 1, **known: Any) -> Memory:
    """It has had UID 8, and not this row."""
    return Memory(slots(8), complete_at=complete_at, **known)


def twice(at: frozenset[Micros], **known: Any) -> Memory:
    """It has had both; UID 8 was deleted at this time, and the truth's deletes came then, too."""
    return two(range_deletes=at | ONCE, sibling_deletes={EIGHT: at}, **known)


def case(
    memory: Memory, becomes: Outcome, *present: int
) -> tuple[Memory, Outcome, frozenset[Slot]]:
    """What is remembered, what follows, and which UIDs of the message the truth has."""
    return memory, becomes, slots(*present)


ORPHANS: dict[str, tuple[Memory, Rule, frozenset[Slot]]] = {
    # 1: a delete of this very row was received
    "its projection row was deleted": case(Memory(projection_deletes=ONCE), ITS),
    "a truth delete named its UID": case(Memory(row_deletes=ONCE), ITS),
    # 2: the truth never had this UID
    "the truth never had it": case(not_it(), NEVER, 8),
    "the truth never had it, others were deleted": case(not_it(range_deletes=ONCE), NEVER),
    "the truth never had it since the message was born": case(Memory(complete_at=0), NEVER),
    "not known, and written at the very µs of memory": case(not_it(LONG_AGO), NO_DELETE, 8),
    "not known, and older than memory": case(not_it(LONG_AGO + 1), NO_DELETE, 8),
    "not known, and lineage is complete only after a delete": case(
        not_it(range_deletes=frozenset({LONG_AGO - 2})), GONE, 8
    ),
    "not known, but lineage is not complete": case(not_it(None, range_deletes=ONCE), GONE, 8),
    "nothing is remembered, and no delete": case(Memory(), NO_DELETE),
    "a delete, and no row is known": case(Memory(complete_at=0, range_deletes=ONCE), GONE),
    "young, and never read": case(Memory(complete_at=0, unseen=True), NO_DELETE),
    # 3: no other UID was lost
    "it alone was lost": case(one(range_deletes=ONCE), ALONE),
    "it alone was lost, another is there": case(two(range_deletes=ONCE), ALONE, 8),
    "another was deleted before it was written": case(
        twice(OF_ANOTHER_ROW, complete_at=LONG_AGO - 3 * DELAY), ALONE
    ),
    "one delete came since memory was whole": case(
        one(complete_at=HALFWAY, range_deletes=times(200, 100)), ALONE
    ),
    "it alone was lost since the listing was read": case(
        one(listing_known_at=NOW - 100 * SECOND - 1, range_deletes=TWICE), ALONE
    ),
    "it alone was lost, perhaps before the listing was read": case(
        one(listing_known_at=NOW - 100 * SECOND, range_deletes=TWICE), GONE
    ),
    "it alone was lost, but the listing may have had another": case(
        one(listing_known_at=None, range_deletes=ONCE), GONE
    ),
    # 4: its content is gone, and no other is known to have been lost
    "nothing is remembered of it": case(Memory(range_deletes=ONCE), GONE),
    "it alone is remembered, not whole": case(Memory(slots(7), range_deletes=ONCE), GONE),
    "whole only after the delete": case(
        one(complete_at=NOW - 100 * SECOND, range_deletes=ONCE), GONE
    ),
    "lost before memory was whole": case(one(range_deletes=ONCE, lost_before=slots(7)), GONE),
    "another ended before it was written, not whole": case(
        twice(frozenset({1}), complete_at=None), GONE
    ),
    # one delete may have taken several
    "another was lost": case(two(range_deletes=ONCE), TRACE),
    "another was lost, lineage is not complete": case(
        two(range_deletes=ONCE, complete_at=None), TRACE
    ),
    "another is not sure": case(Memory(slots(7), slots(8), LONG_AGO, range_deletes=ONCE), TRACE),
    "as many deletes as were lost": case(two(range_deletes=TWICE), TRACE),
    "one delete that was sent again": case(
        two(range_deletes=frozenset({LONG_AGO, LONG_AGO + SECOND}), complete_at=None), TRACE
    ),
    "as many deletes since memory was whole": case(
        two(complete_at=HALFWAY, range_deletes=times(200, 100, 99)), TRACE
    ),
    "deletes before memory was whole do not count": case(
        two(complete_at=HALFWAY, range_deletes=times(200, 100)), TRACE
    ),
    "two deletes for three": case(one(known=slots(7, 8, 9), range_deletes=TWICE), TRACE),
    "another was deleted as often as its own row": case(
        two(range_deletes=TWICE, sibling_deletes={EIGHT: ONCE}), TRACE
    ),
    "two deletes, both for the other": case(
        two(range_deletes=TWICE, sibling_deletes={EIGHT: TWICE}), TRACE
    ),
    "another was deleted when it may have been written": case(
        twice(PERHAPS_ITS_OWN, complete_at=LONG_AGO - 3 * DELAY), TRACE
    ),
    "another is there again, though its delete was heard": case(
        two(range_deletes=TWICE, sibling_deletes={EIGHT: times(99)}), TRACE, 8
    ),
    "another had ended, and the truth had it after that": case(
        twice(frozenset({1}), complete_at=None, had={EIGHT: NOW}), TRACE
    ),
    "another was read before memory began anew": case(
        two(complete_at=None, range_deletes=TWICE, lost_before=slots(8)), TRACE
    ),
    "read before memory began anew": case(
        one(complete_at=None, range_deletes=TWICE, lost_before=slots(7)), TRACE
    ),
}
"""Of a row that is written `LONG_AGO`."""
of_orphans = pytest.mark.parametrize(
    ("memory", "rule", "present"), ORPHANS.values(), ids=ORPHANS.keys()
)


@of_orphans
def test_an_orphan_goes_by_the_first_rule_that_holds_or_stays(
    memory: Memory, rule: Rule, present: frozenset[Slot]
) -> None:
    orphan = seen(row(), memory=memory, present=present)
    assert evidence_for_removal(FAMILY, orphan, DELAY) == (rule.value if rule in AT_ONCE else None)
    answer = verdict(orphan)
    asks = asks_for_content(FAMILY, answer, orphan, DELAY)
    assert asks is (rule in {Rule.CONTENT_GONE, Rule.LAST_TRACE})
    if rule in AT_ONCE:
        assert isinstance(answer, Repair)
        assert answer.rests_on_memory is (rule is not Rule.ITS_DELETE)
        assert answer.sentence.endswith(rule.value)
    else:
        assert isinstance(answer, Report)
        assert answer.kind is Kind.AMBIGUOUS_RANGE_DELETE
        assert (Rule.NO_DELETE.value in answer.sentence) is (rule is Rule.NO_DELETE)


@of_orphans
def test_a_row_of_which_nothing_is_left_goes_unless_a_delete_took_it_with_others(
    memory: Memory, rule: Rule, present: frozenset[Slot]
) -> None:
    orphan = seen(row(), memory=memory, present=present)
    ambiguous = Report(Kind.AMBIGUOUS_RANGE_DELETE, "which one its user meant is not known")
    for there in (ContentFound.KEPT, ContentFound.NOT_KNOWN):
        assert by_content(FAMILY, orphan, there, ambiguous, DELAY) is ambiguous
    answer = by_content(FAMILY, orphan, ContentFound.GONE, ambiguous, DELAY)
    if rule is Rule.CONTENT_GONE:
        place = f"messages: mailbox {MAILBOX} UID 7 is not in the truth"
        assert isinstance(answer, Repair)
        assert (answer.difference.kind, answer.rests_on_memory) == (Kind.EXTRA_ROW, True)
        assert answer.sentence == f"{place}; {rule.value}"
    elif rule is Rule.LAST_TRACE:
        assert isinstance(answer, Report)
        assert answer.kind is Kind.CONTENT_LOST
        assert answer.kind in ACCEPTABLE
        assert rule.value in answer.sentence


# --- how old the row is --------------------------------------------------------------------------

KEYS = Row({"mailboxid": MAILBOX, "uid": 7})
"""A row without any write time."""


@pytest.mark.parametrize(
    ("actual", "complete_at", "evidence"),
    [
        (row(at=LONG_AGO + DELAY, written={"modseq": LONG_AGO}), LONG_AGO, False),
        (row(at=LONG_AGO + DELAY, written={"modseq": LONG_AGO + 1}), LONG_AGO, True),
        (KEYS, 0, True),
        (KEYS, LONG_AGO, False),
        (None, LONG_AGO, False),
    ],
    ids=["oldest cell at", "oldest cell after", "of all its life", "of unknown age", "no row"],
)
def test_memory_counts_for_a_row_whose_oldest_cell_is_newer(
    actual: Row | None, complete_at: Micros, *, evidence: bool
) -> None:
    """Its other cells were written later still: a flag set yesterday says nothing of its birth."""
    orphan = seen(actual, memory=Memory(complete_at=complete_at))
    found = evidence_for_removal(FAMILY, orphan, DELAY)
    assert found == (Rule.NEVER_HAD.value if evidence else None)


STRAY = row(at=NOW, messageid=None)
"""Its user flags an orphan long after the delete; the repair takes the row, and this comes."""
LATER = frozenset({LONG_AGO + DELAY})
HEARD = {
    "2 D before the row": (row(), Memory(range_deletes=PERHAPS_ITS_OWN), True),
    "more than 2 D before the row": (row(), Memory(range_deletes=OF_ANOTHER_ROW), False),
    "after its oldest cell": (
        row(at=NOW, written={"internaldate": LONG_AGO}),
        Memory(range_deletes=LATER),
        True,
    ),
    "before all its cells": (row(at=NOW), Memory(range_deletes=LATER), False),
    "of a row that names no message": (STRAY, Memory(range_deletes=LATER), True),
    "none, of a row that names no message": (STRAY, Memory(slots(7)), False),
    "of a row without write times": (KEYS, Memory(range_deletes=LATER), True),
    "none, of a row without write times": (KEYS, NOTHING_REMEMBERED, False),
    "of the message here": (None, Memory(range_deletes=frozenset({1})), True),
    "of its UID": (None, Memory(row_deletes=frozenset({1})), True),
    "of its row": (None, Memory(projection_deletes=frozenset({1})), True),
    "of another row": (None, Memory(sibling_deletes={EIGHT: frozenset({1})}), False),
    "none": (None, Memory(slots(7), slots(8), LONG_AGO), False),
}


@pytest.mark.parametrize(("actual", "memory", "heard"), HEARD.values(), ids=HEARD.keys())
def test_a_delete_takes_what_was_written_before_it(
    actual: Row | None, memory: Memory, *, heard: bool
) -> None:
    """The list's row is written up to a delay after the truth's, by another clock."""
    assert heard_since_written(FAMILY, seen(actual, memory=memory), DELAY) is heard


@pytest.mark.parametrize(
    ("which", "before", "meant"),
    [
        ("projection_deletes", 2 * DELAY, True),
        ("projection_deletes", 2 * DELAY + 1, False),
        ("row_deletes", -DELAY, True),  # perhaps of the whole partition: the row was there by then
        ("row_deletes", 1 - DELAY, False),
    ],
)
def test_a_delete_of_an_older_row_at_its_key_meant_that_one(
    which: str, before: Micros, *, meant: bool
) -> None:
    """So it is where a UID is given out again, or where we have removed a wrong row."""
    written = NOW - 200 * SECOND
    heard: dict[str, Any] = {which: frozenset({written - before})}
    memory = Memory(slots(7, 8), range_deletes=ONCE, **heard)
    answer = verdict(seen(row(at=written), memory=memory))
    assert isinstance(answer, Repair if meant else Report)
    assert not isinstance(answer, Repair) or not answer.rests_on_memory
    unheard = replace(memory, range_deletes=frozenset())
    heard_at_all = heard_since_written(FAMILY, seen(row(at=written), memory=unheard), DELAY)
    assert heard_at_all is (before <= 2 * DELAY)


def test_of_a_row_that_names_no_message_any_delete_is_its_own() -> None:
    memory = Memory(slots(7), projection_deletes=frozenset({1}))
    assert isinstance(verdict(seen(partial(flagseen=True), memory=memory)), Repair)


# --- what may be on its way ----------------------------------------------------------------------

LATE = replace(MOMENT, frontier=MOMENT.began - 200 * SECOND)
UNKNOWN = not_it()


def written_at(oldest: Micros) -> Row:
    """Its oldest cell counts: an event of the truth came with that one."""
    newer = LATE.heard_until + 9
    return row(at=newer, written={"modseq": oldest, "flagseen": newer})


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("known", [True, False], ids=["of a message", "of no known message"])
def test_what_the_truth_never_had_is_known_once_all_of_before_the_row_has_come(
    after: int, *, known: bool
) -> None:
    at = LATE.heard_until + after
    nameless = seen(partial(flagseen=True, at=at), consulted=frozenset())
    orphan = seen(written_at(at), memory=UNKNOWN) if known else replace(nameless, swept=True)
    assert isinstance(judge(FAMILY, PROJECTION, orphan, LATE), LookAgain if after else Repair)


@pytest.mark.parametrize(("later", "answer"), [(0, Repair), (-1, LookAgain), (1, Repair)])
def test_what_has_come_is_known_up_to_the_frontier(later: int, answer: type) -> None:
    """What has come since then is not: it may have been silent from then on."""
    at_once = replace(LATE, frontier=LATE.began)
    assert at_once.heard_until == replace(LATE, frontier=LATE.began + 9).heard_until
    moment = replace(LATE, frontier=LATE.began - 20 * SECOND + later)
    orphan = seen(row(at=moment.began - 20 * SECOND - DELAY), memory=UNKNOWN)
    assert isinstance(judge(FAMILY, PROJECTION, orphan, moment), answer)


def test_a_delete_that_named_its_row_is_not_waited_for() -> None:
    memory = replace(UNKNOWN, projection_deletes=frozenset({LATE.heard_until + 2}))
    orphan = seen(row(at=LATE.heard_until + 1), memory=memory)
    assert isinstance(judge(FAMILY, PROJECTION, orphan, LATE), Repair)


@pytest.mark.parametrize(
    ("memory", "answer"),
    [
        (KNOWN_WHOLE, LookAgain),
        (ITS_DELETE_HEARD, Repair),
        (one(range_deletes=OF_ANOTHER_ROW), LookAgain),
    ],
    ids=["no delete", "heard", "of before the row"],
)
def test_an_absence_without_a_delete_is_judged_only_when_it_is_a_delay_old(
    memory: Memory, answer: type
) -> None:
    assert isinstance(verdict(replace(seen(row(), memory=memory), suspected=None)), answer)
    assert isinstance(verdict(seen(row(), memory=KNOWN_WHOLE)), Report)


# --- a truth row near a delete: added again, or deleted by its user ------------------------------

MOVED_AWAY = Memory(slots(1, 7), range_deletes=NEAR)
"""One delete, which took UID 1: the message comes back under a new UID."""


def near(apart: Micros, which: str = "range_deletes") -> Memory:
    """A delete of the message here, or of its UID, this long after the row."""
    heard: dict[str, Any] = {which: frozenset({LONG_AGO + apart})}
    return Memory(**heard)


MISSING: dict[str, tuple[Memory, str, frozenset[Slot]]] = {
    "no delete": case(Memory(slots(7)), "added"),
    "a delete of the truth an hour later": case(Memory(range_deletes=times(0)), "added"),
    "one more than D before it": case(near(-DELAY - 1), "added"),
    "one more than D after it": case(near(DELAY + 1), "added"),
    "its own delete in the projection": case(Memory(projection_deletes=times(0)), "by memory"),
    "a near one of the projection alone": case(Memory(projection_deletes=NEAR), "by memory"),
    "a near one that took another row": case(MOVED_AWAY, "by memory"),
    **{f"{apart / SECOND} s away": case(near(apart), "shadowed") for apart in (-DELAY, DELAY)},
    **{
        f"{apart} s away, of its {which}": case(near(apart * SECOND, which), "shadowed")
        for apart in (-10, -1, 0, 1, 10)
        for which in ("range_deletes", "row_deletes")
    },
    "more deletes than lost UIDs": case(
        replace(MOVED_AWAY, range_deletes=NEAR | {LONG_AGO + DELAY + 1}), "shadowed"
    ),
    "it also left the projection": case(replace(MOVED_AWAY, projection_deletes=NEAR), "shadowed"),
    "it also named its UID": case(replace(MOVED_AWAY, row_deletes=NEAR), "shadowed"),
    "the other is not sure": case(replace(MOVED_AWAY, known=slots(7), unsure=slots(1)), "shadowed"),
    "the other is still there": case(MOVED_AWAY, "shadowed", 1, 7),
}
"""Of a row that the listing lacks, and that the truth has since `LONG_AGO`.

A delete shadows as far as two clocks may differ: each from ours by D/2 before repairs pause.
"""


@pytest.mark.parametrize(("memory", "becomes", "present"), MISSING.values(), ids=MISSING.keys())
def test_a_truth_row_near_a_delete_of_its_own_outlived_it(
    memory: Memory, becomes: str, present: frozenset[Slot]
) -> None:
    missing = seen(None, truth(at=LONG_AGO), memory=memory, present=present)
    answer = verdict(missing)
    if becomes == "shadowed":
        assert reported(missing) is Kind.SHADOWED_DELETE
    else:
        assert isinstance(answer, Repair)
        assert answer.rests_on_memory is (becomes == "by memory")


DECIDED = frozenset({Kind.AMBIGUOUS_RANGE_DELETE, Kind.SHADOWED_DELETE})


@pytest.mark.parametrize(
    ("found", "accepted"),
    [
        (seen(row(), memory=Memory(slots(7, 8), range_deletes=ONCE)), DECIDED),
        (seen(None, truth(at=LONG_AGO), memory=near(SECOND)), DECIDED),
        (seen(None, truth(at=LONG_AGO), memory=near(SECOND, "projection_deletes")), DECIDED),
        (
            seen(row(flagseen=False), truth(), memory=replace(near(0), projection_deletes=NEAR)),
            frozenset[Kind](),
        ),
    ],
    ids=["removed", "added", "added, deleted in the projection", "corrected by what is read"],
)
def test_what_a_person_has_accepted_or_is_read_does_not_rest_on_memory(
    found: Seen, accepted: frozenset[Kind]
) -> None:
    answer = verdict(found, accepted)
    assert isinstance(answer, Repair)
    assert not answer.rests_on_memory
