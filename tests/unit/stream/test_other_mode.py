"""Where a stream begins whose events the stream in the other mode has looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Bookmark, KafkaIds, Place
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import EventsLost
from reconcilers.words.model import Micros
from streaming.canary.memory_watch import MemoryReport, MemoryWatch
from streaming.commands.wiring.driver import other_stream
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.starting_point import OtherStream, StartingPoint
from streaming.settings import Mode, Settings
from tests.builders.canaries import CapturedAs, echo, frontier_watch, of_slice, reached
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.progress import MemoryBookmarks
from tests.unit.stream.test_starting_point import LOSSES
from tests.unit.stream.test_supervisor import HERE, OTHERS, OURS, TOPIC, Bench, Kafka

HEARD = {("n1", TOPIC, 0): reached(NOW)}
AGAIN: Place = ("suspects", 0)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def others(at: int, ids: KafkaIds = OURS) -> Bookmark:
    """Up to where the other mode has settled the events; of its suspects many are left."""
    return Bookmark("other", {HERE: at, (OTHERS, 0): 3}, ids, heard=HEARD)


# --- its first start -----------------------------------------------------------------------------


@pytest.mark.parametrize("beginning", [0, 5, 40])
def test_a_first_stream_goes_on_after_what_the_other_mode_has_settled(
    bench: Bench, beginning: int
) -> None:
    bench.others, bench.kafka.beginning = others(40), beginning
    bench.run()
    assert bench.query.started == [{HERE: 40}]
    assert bench.lost == 0, "what the other has settled is remembered"
    assert bench.heard == [HEARD]


def test_what_waits_in_the_others_topic_of_suspects_is_not_lost(bench: Bench) -> None:
    bench.others, bench.kafka.others = others(40), {OTHERS: 90}
    bench.run()
    assert bench.query.started == [{HERE: 40}]


@pytest.mark.parametrize(("lose", "said"), [LOSSES[0], LOSSES[1]])
def test_what_the_other_mode_has_not_settled_either_is_lost(
    bench: Bench, lose: Callable[[Bench], None], said: str
) -> None:
    bench.others = others(40)
    lose(bench)
    with pytest.raises(EventsLost) as told:
        bench.run()
    assert said in str(told.value)
    bench.accept_loss = True
    bench.run()
    assert bench.query.started == [{HERE: bench.kafka.beginning}]
    assert bench.lost_places == {HERE}


def test_of_a_topic_that_was_made_anew_since_the_tail_is_lost(bench: Bench) -> None:
    bench.others = others(40, KafkaIds("ours", {TOPIC: "another"}))
    with pytest.raises(EventsLost, match="from 40 on: the topic was recreated"):
        bench.run()


# --- later ---------------------------------------------------------------------------------------


def test_with_settled_offsets_of_its_own_it_goes_on_there(bench: Bench) -> None:
    bench.settled(20)
    bench.others = others(40)
    bench.run()
    assert bench.query.started == [{HERE: 20}]
    assert bench.heard == []


def test_records_that_are_gone_and_that_the_other_mode_has_settled_are_not_lost(
    bench: Bench,
) -> None:
    bench.settled(20)
    bench.others, bench.kafka.beginning = others(40), 30
    bench.run()
    assert bench.query.started == [{HERE: 40}]
    assert bench.lost == 0
    assert bench.heard == [HEARD]


def test_once_it_runs_they_are_until_it_is_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counters would not hear of what it leaves out, which at a start they need not."""
    bench.settled(20)
    bench.others = others(40)
    monkeypatch.setattr(
        bench.decisions, "check_lease", lambda: setattr(bench.kafka, "beginning", 30)
    )
    with pytest.raises(EventsLost, match="20–29: Kafka's retention has passed"):
        bench.run(deaths=["KAFKA_DATA_LOSS"])
    bench.run()
    assert bench.query.started == [{HERE: 20}, {HERE: 40}]
    assert bench.lost == 0


def test_where_the_other_mode_has_not_come_so_far_they_are_lost(bench: Bench) -> None:
    bench.settled(20)
    bench.others, bench.kafka.beginning = others(29), 30
    with pytest.raises(EventsLost, match="20–29: Kafka's retention has passed"):
        bench.run()
    assert bench.heard == []


class TwoTopics(Kafka):
    """Events and suspects; of the latter the first are gone."""

    def beginning_offsets(self, topics):  # type: ignore[no-untyped-def]
        return {TOPIC: {0: self.beginning}, AGAIN[0]: {0: 8}}


def test_nobody_else_reads_its_suspects(bench: Bench) -> None:
    """Keys to be looked at again in this mode: what the other has settled says nothing of them."""
    bench.kafka = TwoTopics(beginning=30)
    bench.bookmark = Bookmark("message", {HERE: 20, AGAIN: 9}, OURS)
    bench.others = others(40)
    starting = replace(bench.starting_point(), topics=(TOPIC, AGAIN[0]))
    assert starting.positions() == {HERE: 40, AGAIN: 9}
    bench.bookmark = Bookmark("message", {HERE: 20, AGAIN: 7}, OURS)
    with pytest.raises(EventsLost, match="suspects/0 7–7: Kafka's retention has passed"):
        starting.positions()


# --- memory, which both modes have in common -----------------------------------------------------


@pytest.mark.parametrize(("mode", "before"), [("observe", "repair"), ("repair", "observe")])
def test_the_first_stream_in_a_mode_leaves_memory_as_it_is(mode: str, before: str) -> None:
    """What the other mode has left is found under its names; the rest is the driver's."""
    settings, bookmarks, lineage = Settings(), MemoryBookmarks(), MemoryLineage()
    other = StreamNames.of(settings, Mode(before))
    left = {HERE: 40, (other.suspects_topic, 0): 3}
    bookmarks.record(Bookmark(other.bookmarks(MESSAGE), left, OURS, heard=HEARD))
    lineage.watch_from(NOW - SECOND, "tables")
    memory = MemoryWatch(
        lineage,
        MemoryLosses(),
        CapturedAs("tables"),
        lambda: NOW,
        MemoryReport(Metrics(CollectorRegistry())),
    )
    starting = StartingPoint(
        Kafka(beginning=5, others={other.suspects_topic: 9}),
        (TOPIC,),
        lambda: None,
        other_stream(settings, Mode(mode), MESSAGE, bookmarks, frontier_watch()),
        lambda _places: memory.lost_until_now("Kafka no longer holds unread records"),
    )
    assert starting.positions() == {HERE: 40}
    assert lineage.watching() == Watching(NOW - SECOND, captured="tables")


def test_a_canary_that_is_missing_where_one_mode_follows_the_other_is_noticed() -> None:
    lost: list[Micros] = []
    watch = frontier_watch(events_lost=lambda at, _why: lost.append(at), nodes=lambda: ("n1",))
    settled = Bookmark("other", {("james", 0): 40}, OURS, heard={("n1", "james", 0): reached(NOW)})
    other = OtherStream(lambda: settled, (), watch.begin)
    StartingPoint(Kafka(), ("james",), lambda: None, other, lambda _places: None).positions()
    after = NOW + 2 * SECOND  # the one between was acknowledged, and neither mode has heard it
    watch.hear(of_slice(echo(after, previous=NOW + SECOND)), [("james", 0)], after)
    watch.hear([], [("james", 0)], after + 61 * SECOND)
    assert lost == [after]
