"""An index beside a past: of old mail too it becomes right, and no statement of a user is lost.

Seeded runs over `indexed`. Further down rules are broken on purpose, which must be noticed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.rows import compare, plan
from reconcilers.rows.confirm import Moment
from reconcilers.rows.finding import State
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind
from tests.property.indexed import IndexedPast, IndexedRun
from tests.property.races import CLIMATES
from tests.property.seeded import assert_met, played

Property = Callable[[int], IndexedPast]


def with_old_mail(seed: int, *, restores: bool = False) -> IndexedPast:
    """Damage from before the stream; capture that stops and comes back."""
    past = IndexedPast(seed, restores=restores)
    past.play()
    past.converges()
    return past.index_is_right()


def with_a_truth_restored(seed: int) -> IndexedPast:
    """Besides that the truth is set back to a snapshot."""
    return with_old_mail(seed, restores=True)


def with_a_sweep(seed: int) -> IndexedPast:
    """Then all is read once: of every row it is known by now whether it has a message."""
    past = IndexedPast(seed, restores=seed % 2 == 1)
    past.play()
    past.sweep()
    past.converges()
    past.nothing_is_unresolved()
    return past.index_is_right()


def with_users_between(seed: int) -> IndexedRun:
    """No past: users go on between any two reads and writes of ours, with clocks apart."""
    draw, run = random.Random(seed), IndexedRun(CLIMATES[seed % len(CLIMATES)])
    run.world.fates = draw
    run.play([(draw.randrange(18), draw.randrange(60), draw.randrange(60)) for _ in range(80)])
    run.peace()
    return run


def written_beside_users(seeds: Iterable[int]) -> int:
    """How many repairs of the index there were in these runs."""
    return sum(len(with_users_between(seed).kept.planned_of_indexes) for seed in seeds)


def met_by(holds: Property, seeds: Iterable[int]) -> Counter[object]:
    met: Counter[object] = Counter()
    for past in played(holds, seeds):
        met.update(planned.kind for planned in past.run.kept.planned_of_indexes)
        met.update(state for _, state in past.run.kept.ended)
    return met


@pytest.mark.parametrize("holds", [with_old_mail, with_a_truth_restored, with_a_sweep])
def test_an_index_beside_a_past(holds: Property) -> None:
    wanted = (Kind.MISSING_ROW, Kind.EXTRA_ROW, State.VERIFIED)
    assert_met(met_by(holds, range(200)), dict.fromkeys(wanted, 50))


def test_no_statement_of_a_user_to_an_index_is_lost() -> None:
    assert written_beside_users(range(300)) > 300, "hardly anything is: that proves little"


@pytest.mark.long(part="past")
@pytest.mark.parametrize("holds", [with_old_mail, with_a_truth_restored, with_a_sweep])
def test_an_index_beside_a_past_in_many_more_runs(holds: Property) -> None:
    met_by(holds, range(1_000_000, 1_002_000))


# --- the rules, broken on purpose -----------------------------------------------------------------


index_write, compare_index = plan._index_write, compare._compare_index


def as_new_as_the_reads(
    projection: Projection, seen: Seen, difference: Difference, moment: Moment
) -> Write:
    """It reaches what users wrote within D."""
    return replace(index_write(projection, seen, difference, moment), at=moment.began)


def only_what_is_missing(family: Family, projection: Projection, seen: Seen) -> Difference | None:
    """Rows of what was expunged stay."""
    found = compare_index(family, projection, seen)
    return None if found is not None and found.kind is Kind.EXTRA_ROW else found


def test_a_write_as_new_as_the_reads_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_index_write", as_new_as_the_reads)
    with pytest.raises(AssertionError, match="promise 2: the index"):
        written_beside_users(range(300))


def test_rows_of_an_index_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_compare_index", only_what_is_missing)
    with pytest.raises(AssertionError, match="the index at"):
        met_by(with_old_mail, range(200))
