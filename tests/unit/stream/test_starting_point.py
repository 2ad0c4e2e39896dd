"""What was never read and cannot be read any more ends a stream, or is gone on after when told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkpoints.bookmarks import Bookmark, KafkaIds
from reconcilers.words.errors import EventsLost, Unreachable
from streaming.pipeline import supervisor
from streaming.pipeline.starting_point import COMPARE
from tests.unit.stream.test_supervisor import HERE, LOST, OURS, TOPIC, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- what is lost is said -------------------------------------------------------------------------

OTHER = "old.apache_james.imapuidtable"


def made_anew(bench: Bench) -> None:
    bench.settled(40, ids=KafkaIds("ours", {TOPIC: "another"}))


def another_cluster(bench: Bench) -> None:
    bench.settled(40, ids=KafkaIds("theirs", {TOPIC: "one"}))


def another_prefix(bench: Bench) -> None:
    bench.settled(40, OTHER)
    bench.kafka.others[OTHER] = 43


def retention(bench: Bench) -> None:
    bench.kafka.beginning = 41


def shorter(bench: Bench) -> None:
    bench.kafka.end = 39


def another_prefix_and_gone(bench: Bench) -> None:
    bench.settled(40, OTHER)


def a_late_partition(bench: Bench) -> None:
    """Added while no stream ran; its first records were never read."""
    bench.bookmark = Bookmark("message", {(TOPIC, 1): 7}, OURS)
    bench.kafka.beginning, bench.kafka.more = 41, {1: 7}


LOSSES = [
    (retention, f"{TOPIC}/0 40–40: Kafka's retention has passed"),
    (shorter, f"{TOPIC}/0 from 39 on: it ends before 40"),
    (made_anew, f"{TOPIC}/0 from 40 on: the topic was recreated"),
    (another_cluster, f"{TOPIC}/0 from 40 on: this is another Kafka cluster"),
    (another_prefix, f"{OTHER}/0 40–42: the topic is no longer read"),
    (another_prefix_and_gone, f"{OTHER}/0 from 40 on: the topic is gone"),
    (a_late_partition, f"{TOPIC}/0 0–40: Kafka's retention has passed"),
]


@pytest.mark.parametrize(("lose", "said"), LOSSES)
def test_what_was_never_read_and_cannot_be_read_ends_the_start_unless_it_is_accepted(
    bench: Bench, lose: Callable[[Bench], None], said: str
) -> None:
    bench.settled(40)
    lose(bench)
    with pytest.raises(EventsLost) as told:
        bench.run()
    for each in (said, "go on with --accept-loss", COMPARE):
        assert each in str(told.value)
    assert bench.query.started == []
    assert bench.lost == 0
    bench.accept_loss = True
    bench.run()
    added = {(TOPIC, at): 7 for at in bench.kafka.more}
    assert bench.query.started == [{HERE: bench.kafka.beginning, **added}]
    assert bench.lost == 1
    other = said.startswith(OTHER)
    assert bench.lost_places == ({(OTHER, 0)} if other else {HERE})


def test_markers_of_transactions_behind_what_is_settled_are_no_loss(bench: Bench) -> None:
    """They have offsets, and are no records: nothing of the old topic was left unread."""
    bench.settled(40)
    another_prefix(bench)
    bench.kafka.markers_from = 40
    bench.run()
    assert bench.query.started != []
    assert bench.lost == 0


def test_a_topic_that_is_no_longer_read_and_was_read_to_its_end_is_no_loss(bench: Bench) -> None:
    bench.settled(40, OTHER)
    bench.kafka.others = {OTHER: 40}
    bench.run()
    assert bench.query.started == [{HERE: 0}]
    assert bench.lost == 0


def test_a_topic_of_which_kafka_tells_no_partitions_right_now_is_no_loss(bench: Bench) -> None:
    bench.settled(40)
    bench.kafka.beginning_offsets = lambda topics: {}  # type: ignore[method-assign]
    with pytest.raises(Unreachable, match=f"no partitions of {TOPIC}"):
        bench.starting_point().positions()


def test_an_id_that_is_learned_later_is_kept(bench: Bench) -> None:
    bench.kafka.known = KafkaIds("ours", {})
    starting = bench.starting_point()
    starting.positions()
    bench.kafka.known = OURS
    starting.check()
    assert starting.ids() == OURS
    bench.kafka.known = KafkaIds("ours", {TOPIC: "two"})
    with pytest.raises(EventsLost):
        starting.check()


def test_a_topic_made_anew_while_it_is_read_is_a_loss(bench: Bench) -> None:
    starting = bench.starting_point()
    starting.positions()
    starting.check()
    assert starting.ids() == bench.kafka.known
    bench.kafka.known = KafkaIds("ours", {TOPIC: "two"})
    with pytest.raises(EventsLost, match=f"recreated while they were read: {TOPIC}"):
        starting.check()
    assert starting.ids() == OURS


def test_an_id_that_is_not_known_right_now_is_no_loss(bench: Bench) -> None:
    starting = bench.starting_point()
    starting.positions()
    bench.kafka.known = KafkaIds("ours", {})
    starting.check()
    assert starting.ids() == OURS


def test_asked_before_it_has_begun_it_takes_the_topics_for_its_own(bench: Bench) -> None:
    starting = bench.starting_point()
    assert starting.ids() == KafkaIds()
    starting.check()
    assert starting.ids() == OURS


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("deaths", [[LOST], []], ids=["after a death", "while the query lives"])
def test_then_the_stream_begins_again_or_ends(
    bench: Bench, deaths: list[str], accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is made anew at the first question after the death, or at one in between."""
    before = KafkaIds("ours", {TOPIC: "before"})
    bench.settled(40, ids=before)
    bench.kafka.known, bench.accept_loss = before, accepted

    def made_anew() -> None:
        bench.kafka.known = OURS

    if deaths:
        monkeypatch.setattr(bench.decisions, "check_lease", made_anew)
    else:
        monkeypatch.setattr(supervisor, "KAFKA_EVERY", -1.0)
        monkeypatch.setattr(bench, "commit", made_anew)
    if not accepted:
        with pytest.raises(EventsLost, match="from 40 on: the topic was recreated"):
            bench.run(deaths=deaths)
        return
    bench.run(deaths=deaths)
    assert bench.query.started == [{HERE: 40}, {HERE: 0}]
    assert bench.lost == 1


def test_what_is_settled_while_the_query_is_stopped_is_of_the_old_topics(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice may end while its query is stopped; it is recorded with the ids known by then."""
    monkeypatch.setattr(supervisor, "KAFKA_EVERY", -1.0)
    before = KafkaIds("ours", {TOPIC: "before"})
    bench.settled(40, ids=before)
    bench.kafka.known, bench.accept_loss = before, True
    bench.commit = lambda: setattr(bench.kafka, "known", OURS)  # type: ignore[method-assign]
    known: list[KafkaIds] = []
    bench.query.on_stop = lambda: known.append(bench.starting.ids())
    bench.run(looks=1)
    assert bench.query.started == [{HERE: 40}, {HERE: 0}]
    assert known == [KafkaIds(), before]


def test_until_a_loss_is_accepted_what_is_settled_is_of_the_old_topics(bench: Bench) -> None:
    starting = bench.starting_point()
    starting.positions()
    bench.settled(40)
    bench.kafka.known = KafkaIds("ours", {TOPIC: "two"})
    with pytest.raises(EventsLost, match="the topic was recreated"):
        starting.positions()
    assert starting.ids() == OURS
