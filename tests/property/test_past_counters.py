"""Counters beside a past: what was lost long ago, and is remembered by nobody, makes none wrong.

Seeded runs of the counters' loop, as in `test_drift`, over mail that is older than the stream.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

import pytest

from reconcilers.declared.tally import Sums
from reconcilers.words.model import Micros
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.property import tally_runs
from tests.property.mail import SECOND
from tests.property.seeded import assert_met, played
from tests.property.tallies import ROOT, RowKey, World
from tests.property.tally_runs import Run
from tests.property.test_drift import Property, nothing_is_corrected
from tests.property.test_drift import a_run as a_new_run

MINUTE: Micros = 60 * SECOND


class LateListener(World):
    """Quotas are counted by a listener that is minutes behind at times, with all of its queue."""

    def send(self, key: RowKey, deltas: Sums, after: Iterable[Micros]) -> None:
        delays = list(after)
        if isinstance(key[1], str):
            behind = self.now // (20 * MINUTE) % 2 * self.rng.randrange(5 * MINUTE, 10 * MINUTE)
            delays = [each + behind for each in delays]
        super().send(key, deltas, delays)


def a_run(seed: int, world: type[World] = World) -> Run:
    """Old mail, all of it counted, of which nothing is remembered."""
    with patch.object(tally_runs, "World", world):
        run = a_new_run(seed)
    run.world.fill(random.Random(seed).randrange(4, 12))
    run.world.lineage = MemoryLineage()
    run.world.lineage.watch_from(run.world.now)
    return run


def lose_rows(run: Run) -> None:
    """The listing lacks some of the old rows; truth and counters have them."""
    for place in list(run.world.listed):
        if run.world.rng.random() < 0.3:
            del run.world.listed[place]
            run.world.met["lost rows"] += 1


def lose_updates(run: Run) -> None:
    """Some counters are wrong since long ago."""
    used = {*map(str, run.world.mailboxes), str(ROOT)}
    for key, _tally in run.world.rows():
        if str(key[1]) in used and run.world.rng.random() < 0.5:
            wrong = run.world.rng.choice((-2, -1, 1, 2, 3))
            run.world.add(key, dict.fromkeys(run.world.counters[key], wrong))
            run.world.disturb(key)
            run.world.met["lost updates"] += 1


def nothing_made_worse(run: Run) -> Run:
    worse = [each for each in run.sent if each.away]
    assert not worse, f"made worse: {worse[0]}"
    return run


def with_updates_lost(seed: int) -> Run:
    """Old mail is complete, its counters are not: they are right in the end, or it is said."""
    run = a_run(seed)
    lose_updates(run)
    run.play(15 * run.climate.cycle)
    run.touch()
    run.peace()
    nothing_made_worse(run)
    wrong, said = run.wrong(), run.open_findings()
    assert len(wrong) <= len(said), f"wrong, and nobody says so: {wrong}, {said}"
    return run


def with_rows_lost(seed: int) -> Run:
    """The truth and the counters have more than is listed or remembered: nothing is lowered."""
    run = a_run(seed)
    lose_rows(run)
    run.play(15 * run.climate.cycle)
    return nothing_made_worse(run)


def with_a_late_listener(seed: int) -> Run:
    """A quota that is minutes behind is not wrong."""
    run = a_run(seed, LateListener)
    run.world.climate = replace(run.climate, listener=10 * MINUTE + run.climate.written)
    run.play(30 * run.climate.cycle)
    run.live(30 * MINUTE)
    return nothing_is_corrected(run)


def met_by(holds: Property, seeds: Iterable[int]) -> Counter[object]:
    met: Counter[object] = Counter()
    for run in played(holds, seeds):
        met.update(run.world.met)
        met["corrected"] += len(run.sent)
    return met


def test_counters_beside_a_past() -> None:
    met = met_by(with_updates_lost, range(24))
    assert_met(met, {"lost updates": 20, "corrected": 5})


def test_counters_where_old_rows_are_not_listed() -> None:
    assert_met(met_by(with_rows_lost, range(24)), {"lost rows": 20})


def test_quotas_whose_listener_is_minutes_behind() -> None:
    met_by(with_a_late_listener, range(24))


@pytest.mark.long(part="past")
def test_counters_beside_a_past_in_many_more_runs() -> None:
    met_by(with_updates_lost, range(1_000_000, 1_001_000))
