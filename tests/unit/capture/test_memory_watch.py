"""When memory begins, and what ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from checkpoints.losses import Cause, Loss
from reconcilers.declared.capture import text_of, unchanged
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.canary.memory_watch import BEGIN_EVERY, CHECK_EVERY, MemoryReport, MemoryWatch
from streaming.monitoring.metrics import Metrics
from tests.builders.canaries import CapturedAs
from tests.builders.failing import unreachable
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryLineage

HOUR: Micros = 3_600_000_000
NOW: Micros = 500 * HOUR
WHY = "events may be lost: node n1, james/0: 95 s"
AS_IT_IS = "imapuidtable=1@5 messageidtable=2@5"


@dataclass
class Scene:
    """A watch over tables that a test changes; ``now`` is µs, ``seconds`` only go up."""

    tables: CapturedAs = field(default_factory=lambda: CapturedAs(AS_IT_IS, newest=7))
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    losses: MemoryLosses = field(default_factory=MemoryLosses)
    now: Micros = NOW
    seconds: float = 0.0
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    watch: MemoryWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = MemoryWatch(
            *(self.lineage, self.losses, self.tables, lambda: self.now, MemoryReport(self.metrics)),
            lambda: self.seconds,
        )

    def hindrances(self) -> set[str]:
        """Why memory has not begun, as operators see it."""
        (shown,) = self.metrics.no_memory.collect()
        return {each.labels["reason"] for each in shown.samples if each.value}

    @property
    def watching(self) -> Watching | None:
        return self.lineage.watching()

    def later(self, proven: Micros = -1) -> None:
        """The next check is due when this slice is done."""
        self.seconds += CHECK_EVERY + 1
        self.watch.heard({"n1": proven})


@pytest.fixture
def scene() -> Scene:
    return Scene()


# --- it begins -------------------------------------------------------------------------------


def test_it_begins_with_the_first_frontier_and_no_earlier(scene: Scene) -> None:
    scene.watch.check()
    for proven in (-1, 0, 7):
        scene.watch.heard({"n1": proven})
        assert scene.watching is None
    scene.now += HOUR
    scene.watch.heard({"n1": 8})
    assert scene.watching == Watching(NOW + HOUR, captured=AS_IT_IS)


def test_what_was_heard_before_the_tables_were_seen_to_be_captured_begins_nothing(
    scene: Scene,
) -> None:
    scene.watch.heard({"n1": 8})
    assert scene.watching is None


def test_it_waits_for_a_canary_of_every_node(scene: Scene) -> None:
    scene.tables.newest = None
    scene.watch.check()
    scene.watch.heard({"n1": 8})
    assert scene.watching is None
    scene.tables.newest = 9
    scene.seconds += BEGIN_EVERY + 1
    scene.watch.heard({"n1": 8})
    scene.watch.heard({"n1": 9})
    assert scene.watching is None
    scene.watch.heard({"n1": 10})
    assert scene.watching is not None


@pytest.mark.parametrize("change", ["ring", "tables", "off"])
def test_what_changes_while_it_waits_makes_it_wait_anew(scene: Scene, change: str) -> None:
    scene.watch.check()
    if change == "ring":
        scene.tables.ring = "another"
    else:
        scene.tables.tables = None if change == "off" else "imapuidtable=3@9"
    scene.watch.heard({"n1": 8})
    assert scene.watching is None
    scene.tables.tables, scene.tables.newest = AS_IT_IS, 20
    scene.later(proven=8)
    scene.watch.heard({"n1": 20})
    assert scene.watching is None
    scene.watch.heard({"n1": 21})
    assert scene.watching is not None


def test_while_nothing_changes_it_waits_for_what_it_began_to_wait_for(scene: Scene) -> None:
    """Else it would never begin where capture takes longer than from one check to the next."""
    scene.watch.check()
    scene.tables.newest = 50
    scene.later(proven=7)
    scene.watch.heard({"n1": 8})
    assert scene.watching is not None


def test_a_node_that_has_left_is_not_waited_for(scene: Scene) -> None:
    scene.tables.newest = NOW  # of a node that is gone a moment later
    scene.watch.check()
    scene.tables.ring, scene.tables.newest = "without it", 7
    scene.later(proven=7)
    scene.watch.heard({"n1": 8})
    assert scene.watching is not None


def test_cassandra_is_not_asked_with_every_slice(scene: Scene) -> None:
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.watch.check()
    scene.tables.tables = None
    scene.seconds += CHECK_EVERY
    scene.watch.heard({"n1": 8})
    assert scene.watching is not None
    scene.seconds += 0.1
    scene.watch.heard({"n1": 8})
    assert scene.watching is None


# --- it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "now",
    [None, "imapuidtable=9@5 messageidtable=2@5", "imapuidtable=1@6 messageidtable=2@5"],
    ids=["CDC is off", "another table of the same name", "off and on again"],
)
def test_it_ends_where_tables_are_not_captured_as_before(scene: Scene, now: str | None) -> None:
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.watch.check()
    assert scene.watching == Watching(NOW - HOUR, captured=AS_IT_IS)
    scene.tables.tables = now
    scene.later()
    assert scene.watching is None


def test_of_what_an_older_version_has_begun_nothing_is_known(scene: Scene) -> None:
    scene.lineage.watch_from(NOW - HOUR)
    scene.watch.check()
    assert scene.watching is None


def test_it_begins_anew_with_the_next_frontier(scene: Scene) -> None:
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.tables.tables = None
    scene.watch.check()
    scene.tables.tables = "imapuidtable=1@6 messageidtable=2@5"
    scene.tables.newest = 30
    scene.later(proven=29)
    scene.watch.heard({"n1": 30})
    assert scene.watching is None
    scene.watch.heard({"n1": 31})
    assert scene.watching == Watching(NOW, captured="imapuidtable=1@6 messageidtable=2@5")


def test_where_tables_were_altered_it_begins_with_the_next_frontier_of_that_check(
    scene: Scene,
) -> None:
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.tables.tables, scene.tables.newest = "imapuidtable=1@6", 30
    scene.watch.check()
    scene.watch.heard({"n1": 31})
    assert scene.watching == Watching(NOW, captured="imapuidtable=1@6")


def test_one_that_somebody_else_has_ended_begins_with_the_next_frontier(scene: Scene) -> None:
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.watch.check()
    scene.lineage.stop_watching()
    scene.watch.heard({"n1": 99})
    assert scene.watching is None
    scene.later(proven=99)
    scene.watch.heard({"n1": 100})
    assert scene.watching is not None


def test_a_slice_does_not_fail_because_nobody_answers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.tables, "captured", unreachable)
    scene.lineage.watch_from(NOW - HOUR, AS_IT_IS)
    scene.later()
    assert scene.watching is not None
    with pytest.raises(Unreachable):
        scene.watch.check()


# --- a known loss ------------------------------------------------------------------------------


def test_it_begins_anew_where_a_lost_span_ends(scene: Scene) -> None:
    scene.lineage.watch_from(HOUR, AS_IT_IS)
    scene.lineage.mark_swept(2 * HOUR, HOUR)
    scene.watch.lost(2 * HOUR, WHY)
    assert scene.watching == Watching(2 * HOUR, captured=AS_IT_IS)


@pytest.mark.parametrize("until", [2 * HOUR, 3 * HOUR])
def test_it_never_goes_back(scene: Scene, until: Micros) -> None:
    scene.lineage.watch_from(3 * HOUR, AS_IT_IS)
    scene.lineage.mark_swept(4 * HOUR, 3 * HOUR)
    scene.watch.lost(until, WHY)
    assert scene.watching == Watching(3 * HOUR, 4 * HOUR, AS_IT_IS)


def test_where_all_may_be_lost_it_begins_now(scene: Scene) -> None:
    scene.lineage.watch_from(HOUR, AS_IT_IS)
    scene.watch.lost_until_now(WHY)
    assert scene.watching == Watching(NOW, captured=AS_IT_IS)


def test_of_a_clock_that_was_ahead_it_begins_now(scene: Scene) -> None:
    """Canaries of a clock two hours ahead end a span that lies in the future."""
    scene.lineage.watch_from(HOUR, AS_IT_IS)
    scene.watch.lost(NOW + 2 * HOUR, WHY)
    assert scene.watching == Watching(NOW, captured=AS_IT_IS)


def test_every_loss_is_kept_for_operators_with_its_reason(scene: Scene) -> None:
    scene.lineage.watch_from(HOUR, AS_IT_IS)
    scene.watch.lost(2 * HOUR, WHY)
    scene.watch.end("CDC is off for a watched table")
    assert scene.losses.since(0) == (
        Loss(NOW, "CDC is off for a watched table"),
        Loss(2 * HOUR, WHY),
    )


@pytest.mark.parametrize(
    ("lose", "cause"),
    [
        (lambda watch: watch.lost(2 * HOUR, WHY), Cause.CANARIES),
        (lambda watch: watch.lost_until_now(WHY), Cause.RETENTION),
        (lambda watch: watch.check(), Cause.CAPTURE),
        (lambda watch: watch.doubted(WHY, None), Cause.OWN_KEYSPACE),
    ],
    ids=["canaries", "Kafka's retention", "capture", "our keyspace"],
)
def test_every_loss_is_recorded_with_its_cause(
    scene: Scene, lose: Callable[[MemoryWatch], None], cause: Cause
) -> None:
    scene.lineage.watch_from(HOUR, AS_IT_IS)
    scene.tables.tables = None
    lose(scene.watch)
    assert [each.cause for each in scene.losses.since(0)] == [cause]


def test_a_loss_begins_nothing_that_has_not_begun(scene: Scene) -> None:
    scene.watch.lost(2 * HOUR, WHY)
    scene.watch.lost_until_now(WHY)
    assert scene.watching is None


def test_a_sign_of_a_gap_while_it_waits_makes_it_wait_anew(scene: Scene) -> None:
    scene.watch.check()
    scene.watch.end("a count has found a change that no event told of")
    scene.watch.heard({"n1": 8})
    assert scene.watching is None


# --- what is told ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ("", AS_IT_IS, "it is not known how they were captured when lineage began"),
        (AS_IT_IS, None, "CDC is off for a watched table, or the keyspace's writes are not dur"),
        (AS_IT_IS, "imapuidtable=1@6", "a watched table was recreated or altered"),
    ],
)
def test_why_it_ends_is_told(
    scene: Scene, before: str, now: str | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene.lineage.watch_from(NOW - HOUR, before)
    scene.tables.tables = now
    scene.watch.check()
    assert caplog.messages[0].startswith(f"changes may have been missed: {why}")


def test_why_it_has_not_begun_is_told_once_and_when_it_ends_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    off, none = "CDC is off for a watched table", "a node has no canary yet"
    for tables, newest in ((None, 7), (AS_IT_IS, None), (AS_IT_IS, 7), (AS_IT_IS, 7)):
        scene.tables.tables, scene.tables.newest = tables, newest
        scene.later()
        scene.later()
    scene.watch.heard({"n1": 8})
    scene.lineage.stop_watching()
    scene.later()
    awaited = "lineage has not begun: the canaries of every node are awaited"
    assert [each.partition(", or")[0] for each in caplog.messages] == [
        f"lineage has not begun: {off}",
        f"lineage has not begun: {none}",
        awaited,
        "lineage has begun: every change is received from now on",
        awaited,
    ]


# --- how tables are captured -------------------------------------------------------------------

TABLES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["1@5", "1@6", "2@5"]))


@given(was=TABLES, now=TABLES)
def test_every_table_that_was_captured_and_is_must_be_so_as_before(
    was: dict[str, str], now: dict[str, str]
) -> None:
    both = was.keys() & now.keys()
    same = bool(both) and all(was[each] == now[each] for each in both)
    assert unchanged(text_of(was), text_of(now)) == same
    assert not unchanged(text_of(was), None)


# --- what operators see of it ------------------------------------------------------------------


def test_why_it_has_not_begun_is_shown_until_it_has(scene: Scene) -> None:
    scene.tables.tables = None
    scene.watch.check()
    assert scene.hindrances() == {"not_captured"}
    scene.tables.tables, scene.tables.newest = AS_IT_IS, None
    scene.watch.check()
    assert scene.hindrances() == {"no_canary"}
    scene.tables.newest = 7
    scene.watch.check()
    assert scene.hindrances() == {"awaited"}
    scene.watch.heard({"n1": 8})
    assert scene.watching is not None
    assert scene.hindrances() == set()


def test_a_table_that_is_captured_no_more_is_shown_while_all_else_looks_well(scene: Scene) -> None:
    scene.watch.check()
    scene.watch.heard({"n1": 8})
    scene.tables.tables = None
    for proven in (9, 10):
        scene.later(proven)
        assert scene.hindrances() == {"not_captured"}


def test_after_a_restart_it_is_shown_that_memory_had_begun(scene: Scene) -> None:
    scene.lineage.watch_from(NOW, AS_IT_IS)
    scene.watch.check()
    assert scene.hindrances() == set()
