"""The sampler: whose keys it takes, when it looks, and what counts as what."""

import subprocess
import sys
from uuid import UUID

import pytest

from reconcilers.rows.nines import Z_999, Bounds, KnownShare, nines, percent, wilson
from reconcilers.rows.sample import (
    AGES,
    Sample,
    SampledChange,
    SampledLook,
    SampleResult,
    is_sampled,
    result_of,
)
from reconcilers.words.model import SECOND, Kind, Slot

MAILBOX = UUID("4822bcae-0000-1000-8000-000000000001")
SYSTEM = "messages"
TEN, MINUTE, TEN_MINUTES = AGES


def a_sample(most: int = 100) -> Sample:
    return Sample((SYSTEM,), most=most)


def change(written: int, uid: int = 1) -> SampledChange:
    return SampledChange(Slot(MAILBOX, uid), MAILBOX, written)


def key(group: int, uid: int) -> bytes:
    return f'{{"messageid":"{UUID(int=group)}","uid":{uid}}}'.encode()


def test_one_key_in_a_hundred_is_sampled_also_of_one_mailbox() -> None:
    keys = [key(group, uid) for group in range(40) for uid in range(1, 2501)]
    taken = sum(is_sampled(each, 100) for each in keys)
    assert 0.01 in wilson(taken, len(keys), Z_999)


def test_none_is_sampled_if_it_is_off_and_each_one_in_one() -> None:
    assert not any(is_sampled(key(1, uid), 0) for uid in range(1000))
    assert all(is_sampled(key(1, uid), 1) for uid in range(1000))


def test_another_process_samples_the_same_keys() -> None:
    told = (
        "from reconcilers.rows.sample import is_sampled;"
        "print([uid for uid in range(500) if is_sampled(str(uid).encode(), 50)])"
    )
    other = subprocess.run(
        [sys.executable, "-c", told],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == str(
        [uid for uid in range(500) if is_sampled(str(uid).encode(), 50)]
    )


def test_a_change_is_looked_at_at_three_ages() -> None:
    sample = a_sample()
    assert sample.changed(change(1000 * SECOND))
    assert sample.due(1000 * SECOND + TEN - 1, 10) == []
    for age in AGES:
        (look,) = sample.due(1000 * SECOND + age, 10)
        assert look == SampledLook(1000 * SECOND + age, age, change(1000 * SECOND))
        assert look.change == change(1000 * SECOND)
        sample.looked(look, {SYSTEM: SampleResult.CONSISTENT})
    assert sample.shares == {(SYSTEM, age): KnownShare(good=1) for age in AGES}


def test_a_look_that_is_half_as_late_as_its_age_is_not_made() -> None:
    sample = a_sample()
    sample.changed(change(SECOND))
    assert sample.due(SECOND + TEN + TEN // 2 + 1, 10) == []
    assert sample.shares == {(SYSTEM, TEN): KnownShare(missing=1)}
    (minute,) = sample.due(SECOND + MINUTE + MINUTE // 2, 10)
    assert minute.age == MINUTE


def test_looks_above_the_limit_wait_and_are_missing_when_it_is_too_late() -> None:
    sample = a_sample()
    for uid in range(5):
        sample.changed(change(SECOND, uid))
    assert len(sample.due(SECOND + TEN, 3)) == 3
    assert len(sample.due(SECOND + TEN, 1)) == 1
    assert sample.due(SECOND + 2 * TEN, 3) == []
    assert sample.shares == {(SYSTEM, TEN): KnownShare(missing=1)}


def test_a_look_without_a_result_is_missing_for_that_system_alone() -> None:
    sample = Sample((SYSTEM, "indexes"))
    sample.changed(change(SECOND))
    (look,) = sample.due(SECOND + TEN, 1)
    sample.looked(look, {SYSTEM: SampleResult.INCONSISTENT})
    assert sample.shares == {
        (SYSTEM, TEN): KnownShare(bad=1),
        ("indexes", TEN): KnownShare(missing=1),
    }


def test_the_same_change_and_older_ones_of_its_key_count_once() -> None:
    sample = a_sample()
    assert sample.changed(change(5 * SECOND))
    assert not sample.changed(change(5 * SECOND))
    assert not sample.changed(change(4 * SECOND))
    assert sample.changed(change(6 * SECOND))
    assert sample.left_out == 0


def test_changes_of_an_earlier_process_are_left_out_and_their_number_is_known() -> None:
    sample = Sample((SYSTEM,), 1, after=100 * SECOND)
    assert not sample.changed(change(100 * SECOND))
    assert sample.changed(change(100 * SECOND + 1))
    assert sample.left_out == 1


def test_looks_of_an_earlier_process_are_not_made_again_and_those_since_then_are_missing() -> None:
    written, stopped, started = 1000 * SECOND, 1030 * SECOND, 1100 * SECOND
    sample = Sample((SYSTEM,), due_after=stopped)
    assert sample.changed(change(written))
    assert not sample.changed(change(stopped - TEN_MINUTES, uid=2))
    assert sample.due(started, 10) == []
    assert sample.shares == {(SYSTEM, MINUTE): KnownShare(missing=1)}
    (last,) = sample.due(written + TEN_MINUTES, 10)
    assert last.age == TEN_MINUTES


def test_a_newer_write_of_the_truth_makes_a_look_say_nothing() -> None:
    look = SampledLook(SECOND + TEN, TEN, change(SECOND))
    sample = a_sample()
    for newest, found, expected in (
        (SECOND, None, SampleResult.CONSISTENT),
        (None, None, SampleResult.OVERTAKEN),
        (SECOND, Kind.MISSING_ROW, SampleResult.INCONSISTENT),
        (None, Kind.EXTRA_ROW, SampleResult.OVERTAKEN),
        (SECOND + 1, None, SampleResult.OVERTAKEN),
        (SECOND + 1, Kind.MISSING_ROW, SampleResult.OVERTAKEN),
    ):
        assert result_of(look, found, newest) is expected
    sample.looked(look, {SYSTEM: SampleResult.OVERTAKEN})
    assert sample.shares == {}


def test_memory_is_bounded_and_nothing_is_counted_twice_after_it_was_forgotten() -> None:
    sample = a_sample(most=10)
    for uid in range(1, 1001):
        assert sample.changed(change(uid * SECOND, uid))
    assert len(sample._written) <= 10
    assert len(sample._pending) <= 30
    assert not any(sample.changed(change(uid * SECOND, uid)) for uid in range(1, 1001))
    waiting = len(sample._pending)
    assert sum(each.missing for each in sample.shares.values()) == 3 * 1000 - waiting


@pytest.mark.parametrize(
    ("good", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (8, 10, 0.4902, 0.9433)],
)
def test_the_interval_of_wilson(good: int, total: int, low: float, high: float) -> None:
    found = wilson(good, total)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_missing_looks_widen_the_interval_to_both_sides() -> None:
    known, missing = KnownShare(good=90, bad=10), KnownShare(good=90, bad=10, missing=50)
    assert known.interval() == wilson(90, 100)
    assert missing.interval() == Bounds(wilson(90, 150).low, wilson(140, 150).high)
    assert missing.of_looked_at == 0.9
    assert missing.looked_at == 100
    assert KnownShare(missing=5).of_looked_at is None
    assert KnownShare(missing=5).interval().low == 0.0


@pytest.mark.parametrize(
    ("share", "total", "told"),
    [
        (1.0, 5, "100 %"),
        (0.99996, 1000, "99.99 %"),
        (0.5, 0, "50 %"),
        (0.999, 1000, "99.90 %"),
        (2 / 3, 30, "66 %"),
    ],
)
def test_a_share_is_cut_and_has_the_digits_of_its_sample(
    share: float, total: int, told: str
) -> None:
    assert percent(share, total) == told


def test_nines() -> None:
    assert nines(0.999) == pytest.approx(3)
    assert nines(0.0) == 0
