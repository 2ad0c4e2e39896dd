"""Random interleavings of users, faults and the reconciler: promises 2, 3 and 5 hold in each.

A bulk of seeded runs for breadth, hypothesis for a small counterexample where one exists, and
mutations: rules that are known to be wrong must be noticed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconcilers.declared.writes import SetCells, Write
from reconcilers.rows import confirm
from reconcilers.rows.confirm import Moment, judge
from reconcilers.rows.finding import State
from reconcilers.rows.plan import Plan, plan
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Micros, Report, Suspect, Verdict
from streaming.steps import examine
from streaming.steps.confirm import Confirmer
from tests.property import seeded
from tests.property.mail import FAMILY, Climate
from tests.property.message_ports import PROJECTION
from tests.property.races import CLIMATES, Run, Script, holds
from tests.property.seeded import assert_met, played

CHOICES = st.tuples(st.integers(0, 17), st.integers(0, 63), st.integers(0, 127))


def script(seed: int) -> Script:
    draw = random.Random(seed)
    steps = draw.randrange(10, 50)
    return [(draw.randrange(18), draw.randrange(64), draw.randrange(128)) for _ in range(steps)]


def a_run(seed: int, confirmer: type[Confirmer] = Confirmer) -> Run:
    return holds(script(seed), CLIMATES[seed % len(CLIMATES)], confirmer)


def test_many_interleavings_keep_the_promises_and_meet_everything() -> None:
    met: Counter[object] = Counter()
    for run in played(a_run, range(4_000)):
        met.update(planned.kind for planned in run.kept.planned)
        met.update(finding.kind for finding in run.kept.journal.open_findings(FAMILY))
        met.update(state for _, state in run.kept.ended)
    assert_met(met, dict.fromkeys(EXPECTED_TO_BE_MET, 10))


EXPECTED_TO_BE_MET = (
    Kind.MISSING_ROW,
    Kind.DIFFERING_CELLS,
    Kind.EXTRA_ROW,
    Kind.INCOMPLETE_TRUTH_ROW,
    Kind.SHADOWED_DELETE,
    Kind.AMBIGUOUS_RANGE_DELETE,
    Kind.UNGUARDABLE,
    State.VERIFIED,
    State.SUPERSEDED,
    State.HEALED,
)


@pytest.mark.long(part="races")
@pytest.mark.parametrize("first", range(1_000_000, 1_300_000, 30_000))
def test_thirty_thousand_more_interleavings_keep_the_promises(first: int) -> None:
    for _ in played(a_run, range(first, first + 30_000)):
        pass


@settings(
    max_examples=1000,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(CHOICES, max_size=40), st.sampled_from(CLIMATES))
def test_no_interleaving_breaks_a_promise(script: Script, climate: Climate) -> None:
    holds(script, climate)


# --- the guards, broken on purpose ---------------------------------------------------------------


class ProjectionReadAgain(Confirmer):
    """Takes the projection as it is after the truth was read: what a user wrote between the two
    reads looks like a fault.
    """

    def read(self, suspects: Sequence[Suspect]) -> list[Seen]:
        early = super().read(suspects)
        slots = [each.slot for each in early]
        rows = self.tables.projection_with_times(self.projection, slots)
        return [replace(each, actual=rows.get(each.slot)) for each in early]


def written_now(
    projection: object, seen: Seen, difference: Difference, moment: Moment, attempt: int
) -> Plan | Report:
    """Repairs stamped with the time of the repair, as an ordinary client would."""
    planned = plan(PROJECTION, seen, difference, moment, attempt)
    return planned if isinstance(planned, Report) else stamped(planned, moment.began)


def sets_overwritten(
    projection: object, seen: Seen, difference: Difference, moment: Moment, attempt: int
) -> Plan | Report:
    """Whole rows written with ``userflags = {…}`` at C: a tombstone for users' elements."""
    planned = plan(PROJECTION, seen, difference, moment, attempt)
    if isinstance(planned, Report) or not seen.truths:
        return planned
    flags = {"userflags": seen.truths[0].get("userflags")}
    return (*planned, SetCells(PROJECTION, seen.slot, moment.began, flags))


def stamped(writes: Iterable[Write], at: Micros) -> Plan:
    return tuple(replace(write, at=at) for write in writes)


def judged_at_once(
    family: object, projection: object, seen: Seen, moment: Moment, accepted: object
) -> Verdict:
    """Nothing is ever young: what is on its way is taken for missing."""
    later = Moment(moment.began + 2 * moment.delay, moment.delay)
    return judge(FAMILY, PROJECTION, seen, later)


def breaks(promise: str, confirmer: type[Confirmer] = Confirmer) -> bool:
    """Whether one of many runs breaks it."""
    return seeded.breaks(partial(a_run, confirmer=confirmer), range(1500), promise)


@pytest.mark.parametrize("wrong", [written_now, sets_overwritten])
def test_a_wrong_write_is_noticed(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "plan", wrong)
    assert breaks("promise 2")


def test_the_delay_guards_whatever_the_order_of_reads() -> None:
    """Each write of a user leaves a young write time, or a tombstone that is newer than ours."""
    assert not breaks("promise 2", ProjectionReadAgain)


def test_a_wrong_order_of_reads_is_noticed() -> None:
    assert breaks("order of reads", ProjectionReadAgain)


@pytest.mark.parametrize("confirmer", [Confirmer, ProjectionReadAgain])
def test_judging_before_the_delay_is_noticed(
    confirmer: type[Confirmer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "judge", judged_at_once)
    assert breaks("promise 2", confirmer)


def test_removing_without_evidence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "evidence_for_removal", lambda *_: "so it seems")
    assert breaks("evidence")
