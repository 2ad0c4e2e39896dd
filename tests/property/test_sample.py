"""The sampler beside workloads of which it is known how many changes are consistent at each age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from unittest.mock import patch
from uuid import UUID

import pytest

from reconcilers.rows import nines, sample
from reconcilers.rows.nines import Z_999, KnownShare
from reconcilers.rows.sample import AGES, Sample, SampleResult, is_sampled, result_of
from reconcilers.words.key import text_of
from reconcilers.words.model import SECOND, Kind, Micros, Slot
from tests.property.seeded import assert_met, breaks, played

SYSTEMS = ("messages", "deleted_uids")
HEALED_AFTER: dict[Micros, float] = {
    0: 0.90,
    4 * SECOND: 0.05,
    40 * SECOND: 0.03,
    400 * SECOND: 0.015,
    10**15: 0.005,
}
"""How long a change is inconsistent: the share of the changes, by µs; the last for good."""
KNOWN = dict(zip(AGES, (0.95, 0.98, 0.995), strict=True))
"""The share of consistent changes at each age, which follows from it."""
CHANGES = 5_000
SOURCE = UUID(int=7)
ONE_IN = 3
SPAN = 2_000 * SECOND
STEP = 2 * SECOND


@dataclass(frozen=True)
class Change:
    slot: Slot
    written: Micros
    healed: tuple[Micros, ...]
    """When it is consistent, by system."""
    arrives: Micros

    @property
    def is_sampled(self) -> bool:
        return is_sampled(text_of(self.slot).encode(), ONE_IN)

    @property
    def event(self) -> sample.SampledChange:
        return sample.SampledChange(self.slot, SOURCE, self.written)


def changes_of(rng: Random, stopped: tuple[Micros, Micros] = (0, 0)) -> list[Change]:
    """Changes of different keys. While capture is stopped none arrives; then all do at once."""
    made = []
    begin, end = stopped
    for number in range(CHANGES):
        written = SECOND + rng.randrange(SPAN)
        spans = rng.choices([*HEALED_AFTER], [*HEALED_AFTER.values()], k=len(SYSTEMS))
        arrives = written + rng.randrange(3 * SECOND)
        if begin <= arrives < end:
            arrives = end
        slot = Slot(UUID(int=rng.randrange(12)), number)
        made.append(Change(slot, written, tuple(written + each for each in spans), arrives))
    return sorted(made, key=lambda each: each.arrives)


def looks_of(changes: list[Change], taken: Sample, most: int = 10**6) -> None:
    """Play all: each change arrives, each look finds what is so at that time."""
    by_slot = {each.slot: each for each in changes}
    arriving: Iterator[Change] = iter(changes)
    coming = next(arriving, None)
    now = 0
    while now < SPAN + 2 * max(AGES):
        now += STEP
        while coming is not None and coming.arrives <= now:
            if coming.is_sampled:
                taken.changed(coming.event)
            coming = next(arriving, None)
        for look in taken.due(now, most):
            change = by_slot[look.change.slot]
            results = {
                system: result_of(look, None if healed <= now else Kind.MISSING_ROW, change.written)
                for system, healed in zip(SYSTEMS, change.healed, strict=True)
            }
            taken.looked(look, results)


def the_known_share_is_in_the_interval(seed: int) -> Counter[object]:
    taken = Sample(SYSTEMS)
    looks_of(changes_of(Random(seed)), taken)
    for (_system, age), share in taken.shares.items():
        assert share.missing == 0
        assert KNOWN[age] in share.interval(Z_999), (age, share)
    return Counter({"looks": sum(each.looked_at for each in taken.shares.values())})


def with_capture_stopped(seed: int) -> Counter[object]:
    """Nothing comes for ten minutes: the looks that this prevents are missing, and just those."""
    stopped = (600 * SECOND, 1200 * SECOND)
    changes = changes_of(Random(seed), stopped)
    taken = Sample(SYSTEMS)
    looks_of(changes, taken)
    sampled = [each for each in changes if each.is_sampled]
    for (_system, age), share in taken.shares.items():
        late = sum(each.arrives > each.written + age + age // 2 for each in sampled)
        assert share.missing == late, (age, share, late)
        assert share.looked_at + share.missing == len(sampled)
        assert KNOWN[age] in share.interval(Z_999), (age, share)
    return Counter({"missing": sum(each.missing for each in taken.shares.values())})


def with_a_limit_of_its_own(seed: int) -> Counter[object]:
    """What its own limit prevents is missing too."""
    changes = changes_of(Random(seed))
    taken = Sample(SYSTEMS)
    looks_of(changes, taken, most=3)
    sampled = sum(each.is_sampled for each in changes)
    for (_system, age), share in taken.shares.items():
        assert share.looked_at + share.missing == sampled
        assert KNOWN[age] in share.interval(Z_999), (age, share)
    return Counter({"missing": sum(each.missing for each in taken.shares.values())})


def replayed(seed: int) -> Counter[object]:
    """All of it again, in another order, and while it runs: nothing is counted twice."""
    rng = Random(seed)
    changes = changes_of(rng)
    taken = Sample(SYSTEMS)
    copies = [*changes, *(c for c in changes if rng.random() < 0.5)]
    looks_of(sorted(copies, key=lambda each: each.arrives), taken)
    before = dict(taken.shares)
    rng.shuffle(copies)
    assert not any(taken.changed(each.event) for each in copies if each.is_sampled)
    taken.due(10**18, 10**6)
    assert taken.shares == before
    sampled = sum(each.is_sampled for each in changes)
    assert {each.looked_at for each in before.values()} == {sampled}
    return Counter({"again": len(copies)})


def test_the_interval_has_the_known_share_of_a_workload() -> None:
    met = sum(played(the_known_share_is_in_the_interval, range(12)), Counter[object]())
    assert_met(met, {"looks": 100_000})


def test_missing_looks_are_shown_while_capture_is_stopped() -> None:
    met = sum(played(with_capture_stopped, range(3)), Counter[object]())
    assert_met(met, {"missing": 5_000})


def test_missing_looks_are_shown_above_the_limit() -> None:
    met = sum(played(with_a_limit_of_its_own, range(3)), Counter[object]())
    assert_met(met, {"missing": 1_000})


def test_replays_count_nothing_twice() -> None:
    played_all = sum(played(replayed, range(3)), Counter[object]())
    assert_met(played_all, {"again": 15_000})


def _as_consistent(
    self: Sample, look: sample.SampledLook, results: dict[str, SampleResult]
) -> None:
    for system in self.systems:
        result = results.get(system, SampleResult.CONSISTENT)
        share = self.shares.get((system, look.age), KnownShare())
        self.shares[system, look.age] = sample.COUNTED[result](share)


def test_missing_looks_that_count_as_consistent_are_noticed() -> None:
    with patch.object(Sample, "looked", _as_consistent):
        assert breaks(with_capture_stopped, range(1))


def test_an_interval_that_leaves_out_what_is_missing_is_noticed() -> None:
    def without(self: KnownShare, z: float) -> nines.Bounds:
        return nines.wilson(self.good, self.looked_at + self.missing, z)

    with patch.object(KnownShare, "interval", without):
        assert breaks(with_capture_stopped, range(1))


@pytest.mark.parametrize("late", [2.0])
def test_looks_that_are_late_and_count_are_noticed(late: float) -> None:
    def never(self: sample.SampledLook, now: Micros) -> bool:
        return now > self.due + self.age * late * 1000

    with patch.object(sample.SampledLook, "is_too_late", never):
        assert breaks(with_capture_stopped, range(1))
