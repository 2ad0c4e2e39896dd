"""The circuit breaker: how much is believed before a person looks; what refuses one repair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.limits.breakers import (
    Breaker,
    BreakerLimits,
    BreakerState,
    SliceCount,
    after_batch,
    count_of,
)
from reconcilers.limits.ceiling import MINUTE
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import State
from reconcilers.rows.refusal import OBSERVED, Refusal, refusal
from reconcilers.words.model import Difference, Kind, Repair, Suspect
from reconcilers.words.waiting import Wait, Waiting
from tests.builders.found import suspect_at
from tests.builders.indexes import DELETED, INDEXED, LISTS

LIMITS = BreakerLimits()


def after(*counts: SliceCount, limits: BreakerLimits = LIMITS) -> BreakerState:
    state = BreakerState()
    for count in counts:
        state = after_batch(state, count, limits)
    return state


def count(at: int = MINUTE, keys: int = 100, suspects: int = 0, removals: int = 0) -> SliceCount:
    return SliceCount(f"batch of {at}", at, keys, suspects, removals)


def opened(state: BreakerState) -> set[Breaker]:
    return set(state.opened)


def test_the_defaults_are_those_of_the_design() -> None:
    assert BreakerLimits(1000, 0.05, 100, 0.01, 1000) == LIMITS


MINUTES = {
    # keys, suspects and removals of a minute; what opens
    "a quiet one": (100, 0, 0, set()),
    "as many suspects as it may have": (10**6, 1000, 0, set()),
    "one more": (10**6, 1001, 0, {Breaker.REPAIRS}),
    "far more": (10**6, 5000, 0, {Breaker.REPAIRS}),
    "as many removals, of which it may have fewer": (10**6, 100, 100, set()),
    "one removal more": (10**6, 101, 101, {Breaker.REMOVALS}),
    "as large a share of suspects as it may have": (1000, 50, 0, set()),
    "a larger one": (1000, 51, 0, {Breaker.REPAIRS}),
    "as large a share of removals": (1000, 10, 10, set()),
    "a larger one of removals": (1000, 11, 11, {Breaker.REMOVALS}),
    "a share of few keys": (999, 999, 100, set()),
}


@pytest.mark.parametrize("case", MINUTES)
def test_what_a_minute_opens(case: str) -> None:
    keys, suspects, removals, expected = MINUTES[case]
    assert opened(after(count(MINUTE, keys, suspects, removals))) == expected


def test_a_minute_is_counted_over_its_batches() -> None:
    batches = [count(at=at, suspects=400, keys=10**6) for at in (1, 2)]
    assert not opened(after(*batches))
    assert opened(after(*batches, count(at=3, suspects=400, keys=10**6))) == {Breaker.REPAIRS}


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    early = count(at=0, suspects=900, keys=10**6)
    assert opened(after(early, count(at=MINUTE - 1, suspects=900, keys=10**6)))
    assert not opened(after(early, count(at=MINUTE, suspects=900, keys=10**6)))


def test_it_never_closes_by_itself_and_keeps_its_first_reason() -> None:
    state = after(count(at=0, suspects=2000, keys=10**6))
    reason = state.opened[Breaker.REPAIRS]
    for minute in range(1, 60):
        state = after_batch(state, count(at=minute * MINUTE, suspects=1500, keys=10**6), LIMITS)
    assert state.opened[Breaker.REPAIRS] == reason == "2000 in a minute, the limit is 1000"


def test_the_reason_of_a_share_gives_its_numbers() -> None:
    state = after(count(keys=1000, suspects=60))
    assert state.opened[Breaker.REPAIRS] == "60 of 1000 keys in a minute, the limit is 5.0%"


def test_limits_are_settings() -> None:
    assert opened(after(count(suspects=2), limits=BreakerLimits(suspects_per_minute=1)))


def test_a_batch_that_is_executed_again_counts_once() -> None:
    batch = count(keys=10**6, suspects=600)
    assert not opened(after(batch, batch))


def test_a_batch_that_is_executed_again_counts_as_the_most_that_it_found() -> None:
    first, again = SliceCount("b", 1, 100, 5, 3), SliceCount("b", 2, 50, 9, 1)
    assert after(first, again).recent == (SliceCount("b", 2, 100, 9, 3),)
    assert after(again, first).recent == (SliceCount("b", 1, 100, 9, 3),)


def test_each_batch_counts_as_what_it_found_itself() -> None:
    counts = (count(at=1, keys=50, suspects=40, removals=7), count(at=2, keys=20, suspects=1))
    assert after(*counts).recent == counts


# --- what is counted -----------------------------------------------------------------------------


def suspect(kind: Kind | None, projection: Projection = LISTS, *, again: str = "") -> Suspect:
    return suspect_at(7, kind, projection=projection.name, looked_again=bool(again))


@pytest.mark.parametrize(
    ("one", "suspects", "removals"),
    [
        (suspect(Kind.MISSING_ROW), 1, 0),
        (suspect(Kind.DIFFERING_CELLS), 1, 0),
        (suspect(Kind.EXTRA_ROW), 1, 1),
        (suspect(Kind.EXTRA_ROW, DELETED), 1, 0),
        (suspect(Kind.MISSING_ROW, DELETED), 1, 0),
        (suspect(None, again="agrees by now"), 0, 0),
        (suspect(None), 0, 0),
    ],
)
def test_what_is_new_and_differs_counts(one: Suspect, suspects: int, removals: int) -> None:
    counted = counted_of([one])
    assert (counted.suspects, counted.removals) == (suspects, removals)


def counted_of(found: list[Suspect]) -> SliceCount:
    return count_of(found, LISTS.name, 50, lambda _: True, "b", MINUTE)


@pytest.mark.parametrize(
    ("one", "again", "removals"),
    [
        (suspect(Kind.EXTRA_ROW, again="of a finding"), 1, 1),
        (suspect(Kind.MISSING_ROW, again="of a finding"), 1, 0),
        (suspect(Kind.EXTRA_ROW, DELETED, again="of a finding"), 1, 0),
        (suspect(None, again="agrees by now"), 0, 0),
    ],
)
def test_what_comes_back_counts_by_itself_and_is_no_changed_key(
    one: Suspect, again: int, removals: int
) -> None:
    assert counted_of([one]) == SliceCount("b", MINUTE, 49, 0, 0, again, removals)
    counted = count_of([one], LISTS.name, 50, lambda _: False, "b", MINUTE)
    assert counted == SliceCount("b", MINUTE, 49, 0, 0)


def test_all_of_a_batch_are_counted() -> None:
    kinds = (Kind.EXTRA_ROW, Kind.EXTRA_ROW, Kind.MISSING_ROW)
    counted = counted_of([suspect(kind) for kind in kinds])
    assert counted == SliceCount("b", MINUTE, 50, 3, 2)


def test_what_comes_back_counts_for_the_minute_and_not_for_the_share() -> None:
    back = SliceCount("b", MINUTE, 10_000, 0, 0, again=1001, removals_again=101)
    assert opened(after(back)) == {Breaker.REPAIRS, Breaker.REMOVALS}
    assert not opened(after(replace(back, keys=1000, again=1000, removals_again=100)))


# --- a small installation ------------------------------------------------------------------------


def test_the_share_is_of_the_last_keys_however_long_they_took() -> None:
    """60 of 100 keys a minute are lost, minute after minute."""
    minutes = [count(at=at * MINUTE, keys=100, suspects=60, removals=60) for at in range(60)]
    assert not opened(after(*minutes[:9])), "below a thousand keys a share says nothing"
    state = after(*minutes[:10])
    assert opened(state) == {Breaker.REPAIRS, Breaker.REMOVALS}
    assert state.opened[Breaker.REMOVALS] == ("600 of 1000 keys in 10 minutes, the limit is 1.0%")


def test_a_small_installation_that_is_well_opens_nothing() -> None:
    minutes = [count(at=at * MINUTE, keys=100, suspects=5, removals=1) for at in range(100)]
    state = after(*minutes)
    assert not opened(state)
    assert sum(each.keys for each in state.recent) == LIMITS.share_min_keys


def test_what_is_older_than_the_last_keys_is_forgotten_by_the_share() -> None:
    early = count(at=0, keys=500, suspects=50)
    quiet = [count(at=at * MINUTE, keys=500) for at in (2, 4)]
    assert opened(after(early, quiet[0])) == set()
    assert after(early, *quiet).recent == tuple(quiet)


def test_a_busy_minute_counts_as_a_whole() -> None:
    """Not only its last thousand keys, which may be of one slice."""
    calm = count(at=MINUTE, keys=100_000)
    assert not opened(after(calm, count(at=MINUTE + 1, keys=1000, suspects=60)))


def test_slices_without_keys_are_not_kept_beyond_their_minute() -> None:
    idle = [count(at=at * MINUTE // 2, keys=0) for at in range(200)]
    assert len(after(*idle).recent) <= 4


def test_slices_that_were_read_together_add_up() -> None:
    """Each is a batch of its own: ten of 900 are not one of 900."""
    counts = [SliceCount(f"slice {number}", MINUTE, 20_000, 900, 90) for number in range(10)]
    assert opened(after(counts[0])) == set()
    assert opened(after(*counts)) == {Breaker.REPAIRS, Breaker.REMOVALS}
    assert after(*counts[:1] * 10).recent == tuple(counts[:1])


def test_what_a_slice_found_at_first_counts_though_it_was_repaired_before_it_was_done_again() -> (
    None
):
    state = BreakerState()
    for number in range(10):
        for suspects in (900, 0):
            state = after_batch(
                state, SliceCount(f"slice {number}", MINUTE, 20_000, suspects, 0), LIMITS
            )
    assert opened(state) == {Breaker.REPAIRS}


def test_counts_of_a_clock_that_was_ahead_are_let_go_of() -> None:
    ahead = count(at=60 * MINUTE, suspects=900)
    assert opened(after(ahead, count(at=MINUTE, suspects=900))) == set()


# --- what refuses one repair ---------------------------------------------------------------------

OPEN = Admission()
CLOCKS = Waiting(Wait.CLOCKS, "clocks differ")
MANY = Waiting(Wait.BREAKER, "breaker removals: 200 in a minute")
WAIT = Waiting(Wait.BEHIND, "the stream is behind")
PAUSED = Admission(repairs_wait=CLOCKS)
NO_REMOVALS = Admission(removals_wait=MANY)
BOTH = Admission(repairs_wait=CLOCKS, removals_wait=MANY)
OBSERVE = Admission(repairs_wait=CLOCKS, removals_wait=MANY, observe=True)
BEHIND = Admission(memory_wait=WAIT)
EMPTIED = Refusal(
    State.REPORTED,
    Kind.MAILBOX_WITHOUT_TRUTH,
    reason="but this mailbox has lost most of its truth, or of a part: held for a person",
)


def held(kind: Kind, waits: Waiting) -> Refusal:
    return Refusal(State.HELD, kind, waits)


REMOVAL, ADDITION = Kind.EXTRA_ROW, Kind.MISSING_ROW
REFUSALS = [
    (OPEN, ADDITION, LISTS, "emptied", None),
    (OPEN, REMOVAL, LISTS, "has truth", None),
    (OPEN, REMOVAL, LISTS, "emptied", EMPTIED),
    (OPEN, REMOVAL, DELETED, "emptied", None),
    (PAUSED, ADDITION, LISTS, "has truth", held(ADDITION, CLOCKS)),
    (PAUSED, REMOVAL, LISTS, "emptied", held(REMOVAL, CLOCKS)),
    (PAUSED, REMOVAL, DELETED, "emptied", held(REMOVAL, CLOCKS)),
    (NO_REMOVALS, ADDITION, LISTS, "has truth", None),
    (NO_REMOVALS, REMOVAL, LISTS, "emptied", held(REMOVAL, MANY)),
    (NO_REMOVALS, REMOVAL, DELETED, "has truth", None),
    (BOTH, REMOVAL, LISTS, "has truth", held(REMOVAL, CLOCKS)),
    (OBSERVE, ADDITION, LISTS, "has truth", Refusal(State.OBSERVED, ADDITION, OBSERVED)),
    (OBSERVE, REMOVAL, LISTS, "emptied", Refusal(State.OBSERVED, REMOVAL, OBSERVED)),
]


def test_all_is_let_through_and_nothing_is_explained_unless_told() -> None:
    assert Admission(repairs_wait=None, removals_wait=None, observe=False, memory_wait=None) == OPEN
    assert Refusal(State.HELD, REMOVAL) == Refusal(State.HELD, REMOVAL, waits=None, reason="")
    assert BreakerState() == BreakerState(opened={}, recent=())


@pytest.mark.parametrize(("admission", "kind", "projection", "mailbox", "expected"), REFUSALS)
def test_whether_a_repair_is_carried_out(
    admission: Admission,
    kind: Kind,
    projection: Projection,
    mailbox: str,
    expected: Refusal | None,
) -> None:
    may_lose_rows = mailbox == "has truth"
    repair = repair_of(kind)
    assert refusal(repair, INDEXED, projection, admission, lambda: may_lose_rows) == expected


def repair_of(kind: Kind, rests_on_memory: bool = False) -> Repair:
    return Repair(Difference(kind), "", rests_on_memory)


@pytest.mark.parametrize("kind", [REMOVAL, ADDITION])
@pytest.mark.parametrize(
    ("admission", "expected"),
    [
        (OPEN, None),
        (BEHIND, (State.HELD, WAIT)),
        (replace(PAUSED, memory_wait=WAIT), (State.HELD, CLOCKS)),
        (replace(OBSERVE, memory_wait=WAIT), (State.OBSERVED, WAIT)),
    ],
)
def test_what_rests_on_memory_waits_while_the_stream_is_behind(
    admission: Admission, expected: tuple[State, Waiting] | None, kind: Kind
) -> None:
    refused = refusal(repair_of(kind, True), INDEXED, LISTS, admission, lambda: True)
    assert refused == (None if expected is None else Refusal(expected[0], kind, expected[1]))


@pytest.mark.parametrize("kind", [REMOVAL, ADDITION, Kind.DIFFERING_CELLS])
def test_what_rests_on_no_memory_does_not_wait(kind: Kind) -> None:
    assert refusal(repair_of(kind), INDEXED, LISTS, BEHIND, lambda: True) is None


@pytest.mark.parametrize(
    ("admission", "kind", "projection", "rests_on_memory"),
    [
        (OPEN, ADDITION, LISTS, False),
        (OPEN, REMOVAL, DELETED, False),
        (PAUSED, REMOVAL, LISTS, False),
        (NO_REMOVALS, REMOVAL, LISTS, False),
        (OBSERVE, REMOVAL, LISTS, False),
        (BEHIND, REMOVAL, LISTS, True),
    ],
)
def test_a_mailbox_is_not_read_for_what_is_refused_or_waits_or_removes_nothing(
    admission: Admission, kind: Kind, projection: Projection, rests_on_memory: bool
) -> None:
    def read_whole() -> bool:
        raise AssertionError("the whole mailbox was read")

    refusal(repair_of(kind, rests_on_memory), INDEXED, projection, admission, read_whole)
