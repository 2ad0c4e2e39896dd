"""Which suspects of a slice travel to the driver, and what is counted of the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from reconcilers.limits.hold import Hold
from reconcilers.words.model import Kind, Slot, Suspect
from streaming.pipeline.suspect_cap import MOST, READY, TAKEN_TOGETHER, Cap, left_out, split
from tests.builders.found import suspect_at
from tests.builders.indexes import DELETED, INDEXED
from tests.builders.rows import MESSAGE_ID, NOW
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.holds import MemoryHolds


def suspects(
    number: int, kind: Kind | None = Kind.MISSING_ROW, again: bool = False, first: int = 1
) -> list[Suspect]:
    uids = range(first, first + number)
    return [suspect_at(uid, kind, [MESSAGE_ID], looked_again=again) for uid in uids]


def test_up_to_the_most_all_travel_in_their_order() -> None:
    found = suspects(5)
    assert split(found, 5) == (found, [])


def test_what_came_back_goes_first_and_each_travels_once() -> None:
    """Each round the driver takes some; the others come back with the new ones of that time."""
    left, rounds, taken = list[Suspect](), 0, Counter[Slot]()
    while rounds < 4 or left:
        new = suspects(10, first=1 + 100 * rounds) if rounds < 4 else []
        again = [replace(each, looked_again=True) for each in left]
        travel, left = split([*new, *again], 6)
        rounds_of = [uid_of(each.slot) // 100 for each in travel]
        assert max(rounds_of) <= min((uid_of(each.slot) // 100 for each in left), default=4)
        taken.update(each.slot for each in travel)
        rounds += 1
    assert (len(taken), set(taken.values()), rounds) == (40, {1}, 7)


@pytest.mark.parametrize(
    "one",
    [
        replace(suspect_at(9, None), unreadable="too many tombstones"),
        suspect_at(9, Kind.UNRESOLVED, looked_again=True),
        suspect_at(9, None),  # of an index that could not be read
    ],
    ids=["unreadable", "of a delete alone", "of a table"],
)
def test_what_a_later_look_would_not_find_by_its_slot_always_travels(one: Suspect) -> None:
    travel, left = split([*suspects(3), one], 2)
    assert one in travel
    assert (len(travel), len(left)) == (2, 2)
    assert split([one] * 3, 2) == ([one] * 3, [])


def test_what_agrees_by_now_waits_for_its_turn() -> None:
    agrees = suspects(3, kind=None, again=True)
    assert split([*suspects(2), *agrees], 2) == (agrees[:2], [agrees[2], *suspects(2)])


def test_the_new_ones_are_counted_by_projection_and_kind_without_keys_on_hold() -> None:
    holds, listing = MemoryHolds(), INDEXED.listing.name
    of_index = [replace(each, projection=DELETED.name) for each in suspects(2, Kind.EXTRA_ROW)]
    came_back = [*suspects(5, again=True, first=20), *suspects(1, kind=None, again=True, first=30)]
    left = [*suspects(4), *of_index, *came_back]
    holds.place(Hold(INDEXED.name, listing, left[0].slot, NOW, "alice", "undone"))
    (found,) = left_out(INDEXED, holds, left, ready=len(left))
    assert found.new == {(listing, Kind.MISSING_ROW): 3, (DELETED.name, Kind.EXTRA_ROW): 2}
    assert (found.number, found.suspects()) == (len(left), left)


def test_the_first_are_pickled_in_parts_and_the_others_counted_alone() -> None:
    left = suspects(TAKEN_TOGETHER + 7)
    *parts, others = left_out(INDEXED, MemoryHolds(), left, ready=TAKEN_TOGETHER + 3)
    assert [each.number for each in parts] == [TAKEN_TOGETHER, 3]
    assert [suspect for each in parts for suspect in each.suspects()] == left[:-4]
    assert (others.new.total(), others.number, others.suspects()) == (4, 0, [])
    assert list(left_out(INDEXED, MemoryHolds(), [], ready=3)) == []


@pytest.mark.parametrize(
    ("shares", "cap"),
    [
        (1, Cap(MOST, READY)),
        (2, Cap(MOST // 2, READY // 2)),
        (16, Cap(MOST // 16, 1_000)),
        (MOST + 1, Cap(1, 1_000)),
    ],
)
def test_a_share_has_its_part_and_the_driver_can_take_as_many_as_open_a_breaker(
    shares: int, cap: Cap
) -> None:
    assert Cap.of_a_share(shares, believed=1_000) == cap
