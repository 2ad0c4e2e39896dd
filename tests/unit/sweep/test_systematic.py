"""A column that differs in very many rows: how many they are, and what becomes of each. Pure."""

from __future__ import annotations

from uuid import UUID

import pytest

from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.rows.finding import State
from reconcilers.sweep.systematic import (
    EXAMPLES,
    LEAST_ROWS,
    ONE_IN,
    Extent,
    Fate,
    Pattern,
    Spread,
    fate,
    patterns_of,
    place_of,
    systematic,
)
from reconcilers.words.key import slot_from_text, text_of
from reconcilers.words.model import Kind, Slot, Suspect
from tests.builders.rows import FAMILY, MAILBOX, NOW, SLOT

THREAD = Pattern("messages", Kind.DIFFERING_CELLS, "threadid")
RARE, UNDECIDED, SYSTEMATIC, ACCEPTED = Spread


def test_it_is_more_than_one_in_a_hundred_and_a_thousand_rows() -> None:
    assert (LEAST_ROWS, ONE_IN) == (1_000, 100)


@pytest.mark.parametrize(
    ("found", "rows", "spread"),
    [
        (0, 0, RARE),
        (1, 100, RARE),
        (1, 99, UNDECIDED),
        (999, 1_000, UNDECIDED),
        (999, 99_900, RARE),
        (1_000, 1_000, SYSTEMATIC),
        (1_000, 99_999, SYSTEMATIC),
        (1_000, 100_000, RARE),
        (50_000, 10_000_000, RARE),
        (100_001, 10_000_000, SYSTEMATIC),
    ],
)
def test_how_far_it_has_spread(found: int, rows: int, spread: Spread) -> None:
    assert Extent(THREAD, found, rows).spread is spread


@pytest.mark.parametrize(
    ("spreads", "expected"),
    [
        ([], Fate.HANDED_OVER),
        ([RARE], Fate.HANDED_OVER),
        ([UNDECIDED], Fate.WAITS),
        ([SYSTEMATIC], Fate.LEFT),
        ([ACCEPTED], Fate.HANDED_OVER),
        ([SYSTEMATIC, SYSTEMATIC], Fate.LEFT),
        ([SYSTEMATIC, RARE], Fate.HANDED_OVER),
        ([UNDECIDED, RARE], Fate.HANDED_OVER),
        ([SYSTEMATIC, UNDECIDED], Fate.WAITS),
        ([SYSTEMATIC, ACCEPTED], Fate.LEFT),
        ([UNDECIDED, ACCEPTED], Fate.WAITS),
        ([ACCEPTED, RARE], Fate.HANDED_OVER),
    ],
)
def test_what_becomes_of_a_row(spreads: list[Spread], expected: Fate) -> None:
    assert fate(spreads) is expected
    assert fate(reversed(spreads)) is expected


def test_a_row_follows_a_pattern_for_each_column_that_differs() -> None:
    columns = ("threadid", "save_date")
    suspect = Suspect(SLOT, frozenset(), Kind.DIFFERING_CELLS, "messages", columns=columns)
    assert patterns_of(FAMILY, suspect) == (
        THREAD,
        Pattern("messages", Kind.DIFFERING_CELLS, "save_date"),
    )


@pytest.mark.parametrize("kind", [Kind.MISSING_ROW, Kind.EXTRA_ROW, None])
def test_a_row_that_is_missing_or_too_much_or_unreadable_follows_none(kind: Kind | None) -> None:
    assert patterns_of(FAMILY, Suspect(SLOT, frozenset(), kind, "messages")) == ()


def test_a_row_that_collects_is_one_row_however_many_messages_show_it() -> None:
    """A mailbox's user flags: each message whose flag is not there finds the same row wrong."""
    kind, columns = Kind.DIFFERING_CELLS, ("userflags",)
    suspect = Suspect(SLOT, frozenset(), kind, "applicable_flags", columns=columns)
    assert patterns_of(FAMILY, suspect) == ()


def test_the_finding_names_kind_column_count_share_examples_and_what_is_typed() -> None:
    examples = tuple(Slot(MAILBOX, uid) for uid in range(1, EXAMPLES + 1))
    found = systematic(FAMILY, Extent(THREAD, 1_200, 3_000, examples), NOW)
    key = text_of(found.slot)
    assert (found.kind, found.state, found.projection) == (Kind.SYSTEMATIC, State.HELD, "messages")
    assert found.kind in ACCEPTABLE
    assert (found.found_at, found.tried_at, found.next_look) == (NOW, NOW, None)
    assert found.sentence == (
        "differing_cells in threadid: 1200 of 3000 rows of messages that were compared (40 %),"
        f" {MAILBOX}/1, {MAILBOX}/2, {MAILBOX}/3 among them. Where nothing else differs, none of"
        f" these is repaired before a person accepts it: `reconcile findings --accept {key}"
        " --system messages`, then `reconcile sweep` hands them over to the stream"
    )


def test_what_both_tables_lack_asks_nobody_to_accept_anything() -> None:
    pattern = Pattern("messages", Kind.INCOMPLETE_IN_BOTH, "headercontent")
    found = systematic(FAMILY, Extent(pattern, 1300, 1300, (Slot(MAILBOX, 1),)), NOW)
    assert found.sentence == (
        "incomplete_in_both in headercontent: 1300 of 1300 rows of messages that were compared"
        f" (100 %), {MAILBOX}/1 among them. Both tables lack it: nothing is to be repaired, and"
        " counters count these rows"
    )


def test_each_kind_and_column_has_a_place_of_its_own_that_can_be_typed() -> None:
    columns = FAMILY.listing.columns
    kinds = (Kind.DIFFERING_CELLS, Kind.INCOMPLETE_TRUTH_ROW)
    places = {
        place_of(FAMILY, Pattern("messages", kind, each)) for kind in kinds for each in columns
    }
    assert len(places) == len(kinds) * len(columns)
    kept = "00000000-0000-1000-8000-000000000000/-2934887913"
    assert text_of(place_of(FAMILY, THREAD)) == kept  # in the journal
    for place in places:
        assert slot_from_text(FAMILY.key, text_of(place)) == place
        assert place.group == UUID("00000000-0000-1000-8000-000000000000")
