"""Counters behind a queue, in ranges, and beside lost events, in the runs of `test_drift`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import pytest

from reconcilers.capture.frontier import Proven
from reconcilers.declared.tally import Tally
from reconcilers.words.model import Micros
from streaming.counters import count as count_module
from streaming.counters import recount as recount_module
from streaming.counters.look_rules import LookRules
from streaming.counters.unmarked_changes import WatchedTallies
from tests.property.mail import SECOND
from tests.property.seeded import assert_met
from tests.property.tally_runs import K, Run
from tests.property.test_drift import (
    FAULTS,
    FEW,
    MANY_MORE,
    Property,
    a_run,
    all_is_right,
    is_broken,
    met_by,
    no_loss_is_proven,
    nothing_is_corrected,
    traffic,
    with_faults,
)

BACKLOG: Micros = 600 * SECOND
"""How far the listener of quotas may be behind."""


def behind_a_listener(run: Run) -> Run:
    """Quotas are written by a listener, which may be ten minutes behind."""
    run.world.climate = replace(run.climate, listener=BACKLOG + run.climate.written)
    run.world.listens_in = partial(run.world.rng.randrange, BACKLOG)
    return run


def with_a_listener_behind(seed: int) -> Run:
    """A quota listener ten minutes behind: no correction."""
    run = behind_a_listener(a_run(seed))
    run.play(traffic(run, 30))
    run.live(2 * BACKLOG)
    assert not run.ports.false, run.ports.false[0]
    return nothing_is_corrected(run)


def with_faults_behind_a_listener(seed: int) -> Run:
    """The same where updates are lost and doubled: exact, later."""
    run = behind_a_listener(a_run(seed, FAULTS, FAULTS))
    run.play(traffic(run))
    run.live(5 * BACKLOG)
    assert not run.ports.false, run.ports.false[0]
    return all_is_right(run)


def with_recounts_in_ranges(seed: int) -> Run:
    """Mailboxes larger than a range: whole counts take several turns, while all goes on."""
    run = a_run(seed, FAULTS, FAULTS)
    few = patch.multiple(count_module, ROWS_A_RANGE=3, VERY_LARGE=10)
    with few, patch.object(recount_module, "ROWS_A_RANGE", 3):
        run.play(traffic(run))
        run.peace(2 * K)
    assert not run.ports.false, run.ports.false[0]
    return all_is_right(no_loss_is_proven(run))


# --- each of them ---------------------------------------------------------------------------------

EVERY: dict[Property, dict[object, int]] = {
    with_a_listener_behind: {"agrees": 100},
    with_faults_behind_a_listener: {"corrected": 50, "verified": 30},
    with_recounts_in_ranges: {"corrected": 50, "verified": 30},
}
"""With what the runs have to meet, or they prove little."""


@pytest.mark.parametrize("holds", EVERY, ids=lambda holds: holds.__name__)
def test_counters(holds: Property) -> None:
    assert_met(met_by(holds, range(FEW)), EVERY[holds])


@pytest.mark.long(part="counters-losses")
@pytest.mark.parametrize("holds", EVERY, ids=lambda holds: holds.__name__)
def test_counters_in_many_more_runs(holds: Property) -> None:
    met_by(holds, MANY_MORE)


# --- the rules, broken on purpose -----------------------------------------------------------------


def at_once(rules: LookRules, tally: Tally) -> Micros:
    """A quota is judged as if it were written with its mailbox."""
    return 0


def at_the_counts_end(lost: WatchedTallies, proven: Proven) -> None:
    """Whether an event is still under way is not asked."""
    for each in lost._doubts:
        lost._decide(each)
    lost._doubts.clear()


BROKEN = (
    (LookRules, "lag", at_once, with_a_listener_behind),
    (WatchedTallies, "heard", at_the_counts_end, with_faults),
)


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"), BROKEN, ids=lambda each: str(each)[:40]
)
def test_a_broken_rule_is_noticed(
    where: object, name: str, rule: object, holds: Property, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, rule)
    assert is_broken(holds)
