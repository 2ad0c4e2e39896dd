"""A clock that steps between admission and write: what may have been judged by it is not written.

The clock is the worker's own. A cluster's workers are on other hosts than the driver, which knows
nothing of theirs; so each measures the nodes' clocks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.model import KeyValue, Kind, Row, Slot, Suspect, Wake
from streaming.pipeline.repair_task import repair_task
from streaming.pipeline.worker import Connections, Job
from streaming.settings import Settings
from streaming.steps.examine import Examiner
from streaming.steps.outcome import Outcome
from streaming.steps.repair import CONFIRMED_TOGETHER
from tests.builders.clocks import Host, OneNode
from tests.builders.examining import examiner
from tests.builders.permits import unpaused
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    PROJECTION,
    SECOND,
    truth,
)
from tests.fakes.checkpoints.memory import (
    MemoryExpiries,
    MemoryJournal,
    MemoryLineage,
)
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.fakes.memory_tables import MemoryTables

HOUR = 3600.0
ADMISSION, C, ROWS, TRUTH, MEMORY, INTENT, WRITE = (
    "share begins",
    "C is taken",
    "the projection is read",
    "the truth is read",
    "the journal is read",
    "the intent is kept",
    "the write is sent",
)


@dataclass
class Worker:
    """A worker's process; ``at`` is called when it comes to each point on its way."""

    at: Callable[[str], None]
    host: Host = field(default_factory=Host)
    rows: int = 1
    published: list[Wake] = field(default_factory=list)
    kept: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = OneNode(self.host)
        self.clocks = self.node.watch()
        self.tables = Tables(self)
        slots = [Slot(MAILBOX, uid) for uid in range(1, self.rows + 1)]
        self.tables.truths = {MESSAGE_ID: tuple(truth(uid=slot.key[1]) for slot in slots)}
        self.journal = Journal(self)
        self.suspects = [
            Suspect(slot, frozenset({MESSAGE_ID}), Kind.MISSING_ROW, PROJECTION.name, LONG_AGO)
            for slot in slots
        ]

    def connect(self, _settings: Settings, _family: Family) -> Connections:
        lineage, tallies = MemoryLineage(), MemoryTallies()
        return Connections(
            self.tables, lineage, self.journal, MemoryExpiries(), tallies, self.clocks, unpaused()
        )

    def clock(self) -> int:
        now = self.host.now()
        self.at(C)
        return now

    def examiner(self, _job: Job, projection: Projection) -> Examiner:
        return examiner(
            *(FAMILY, projection, self.tables, MemoryLineage(), self.journal),
            publish=self.published.extend,
            clock=self.clock,
        )

    def share(self, admission: Admission) -> list[Outcome]:
        """Steps 5 to 7 for all suspects, one delay after the last time."""
        self.host.steady += DELAY / SECOND + 1
        self.at(ADMISSION)
        job = Job(Settings(), FAMILY, "suspects", self.connect, self.examiner)
        return list(repair_task(job, "slice")([(admission, self.suspects)]))


@dataclass
class Tables(MemoryTables):
    worker: Worker = field(kw_only=True)

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self.worker.at(ROWS)
        return super().projection_with_times(projection, slots)

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.worker.at(TRUTH)
        return super().truth_serially(messageids)

    def apply(self, writes: Sequence[Write]) -> None:
        self.worker.at(WRITE)
        super().apply(writes)


class Journal(MemoryJournal):
    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.host.now)
        self.worker = worker

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        self.worker.at(MEMORY)
        return super().recall(family, projection, slots)

    def put(self, finding: Finding) -> None:
        self.worker.kept.append(finding)
        self.worker.at(INTENT)
        super().put(finding)


@dataclass
class Steps:
    """Sets the clock when the worker comes to a point, once."""

    when: str
    by: float
    host: Host = field(default_factory=Host)
    done: bool = False

    def __call__(self, point: str) -> None:
        if point == self.when and not self.done:
            self.host.ahead += self.by
            self.done = True


def stepping(when: str, by: float) -> Worker:
    steps = Steps(when, by)
    return Worker(steps, steps.host)


def actions(outcomes: Iterable[Outcome]) -> list[Action]:
    return [each.action for each in outcomes]


def test_where_the_clock_stands_all_is_repaired() -> None:
    worker = stepping("never", HOUR)
    assert actions(worker.share(Admission())) == [Action.REPAIR]
    assert worker.tables.applied


@pytest.mark.parametrize("by", [HOUR, -HOUR, 1.5, -1.5])
@pytest.mark.parametrize("when", [C, MEMORY, ROWS, TRUTH])
def test_a_clock_that_steps_before_the_write_keeps_it_back_and_says_so(
    when: str, by: float
) -> None:
    worker = stepping(when, by)
    (told,) = worker.share(Admission())
    assert told.action is Action.LOOK_AGAIN
    assert told.reason == f"our own clock has moved by {by:.1f} s since the nodes' were measured"
    assert (worker.tables.applied, worker.kept) == ([], [])
    assert [(each.looked_again, each.suspected) for each in worker.published] == [
        (True, Kind.MISSING_ROW)
    ]


@pytest.mark.parametrize("when", [INTENT, WRITE])
def test_what_is_being_written_then_is_stamped_by_the_clock_before(when: str) -> None:
    worker = stepping(when, HOUR)
    worker.tables.truths = {MESSAGE_ID: (truth(uid=1, at=NOW),)}
    worker.share(Admission())
    assert {each.at for each in worker.tables.applied} == {NOW}
    kept = worker.kept[-1]
    assert (kept.state, kept.attempts) == (State.INTENDED, 1)


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_clock_that_has_gone_wrong_before_the_share_is_measured_and_all_is_held(
    by: float,
) -> None:
    """As on a host that is not the driver's: its admission knows of nothing.

    So it is where the clock was wrong from the first.
    """
    worker = stepping(ADMISSION, by)
    (told,) = worker.share(Admission())
    assert told.finding is not None
    assert told.finding.state is State.HELD
    assert told.finding.told.endswith(f"; held: the clock of a differs from ours by {-by:.1f} s")
    assert worker.tables.applied == []
    (at_once,) = Worker(lambda _point: None, Host(ahead=by)).share(Admission())
    assert at_once.finding is not None
    assert at_once.finding.state is State.HELD


def test_what_came_back_is_repaired_when_the_clocks_have_been_measured_anew() -> None:
    worker = stepping(TRUTH, 5.0)
    assert actions(worker.share(Admission())) == [Action.LOOK_AGAIN]
    asked = worker.node.asked
    assert actions(worker.share(Admission())) == [Action.REPAIR]
    assert worker.node.asked == asked + 1


def test_until_a_node_answers_it_comes_back() -> None:
    worker = stepping(TRUTH, HOUR)
    worker.share(Admission())
    worker.node.silent = True
    assert actions(worker.share(Admission())) == [Action.LOOK_AGAIN]
    worker.node.silent, worker.host.ahead = False, 0.0
    assert actions(worker.share(Admission())) == [Action.REPAIR]


def test_a_step_and_back_while_a_confirmation_begins_leaves_nothing_judged_by_it() -> None:
    host = Host()

    def there_and_back(point: str) -> None:
        if point == MEMORY:  # what is parked is asked for before C is taken
            host.ahead = HOUR
        elif point in {ROWS, TRUTH}:
            host.ahead = 0.0

    worker = Worker(there_and_back, host)
    assert actions(worker.share(Admission())) == [Action.LOOK_AGAIN]
    assert worker.tables.applied == []


def test_what_was_written_before_the_step_stays_and_the_rest_comes_back() -> None:
    count = [0]
    host = Host()

    def in_the_second_group(point: str) -> None:
        count[0] += point == ROWS
        if count[0] == 2:
            host.ahead = HOUR

    worker = Worker(in_the_second_group, host, rows=CONFIRMED_TOGETHER + 50)
    done = actions(worker.share(Admission()))
    assert done == [Action.REPAIR] * CONFIRMED_TOGETHER + [Action.LOOK_AGAIN] * 50
    assert len(worker.published) == CONFIRMED_TOGETHER + 50
