"""Counters or rows: the book of the benchmark, what it tells of its runs, and what it draws."""

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from deploy.mailserver.faults import FaultKind, StatementTimeoutError
from deploy.mailserver.history import CounterWrite
from tests.bench.counter_rows.book import Book, Verdict, times_counted, verdict
from tests.bench.counter_rows.disturbed import planted_in
from tests.bench.counter_rows.plots import bars, draw_harms, draw_speeds, planted_of, wrong_changes
from tests.bench.counter_rows.race import Speed, percentile
from tests.bench.counter_rows.stream import BATCH, EVENTS, Row, Topic, with_changes
from tests.bench.counter_rows.summary import (
    HEADER,
    READ_HEADER,
    Harm,
    Spread,
    by_cell,
    harm_rows,
    ratios,
    read_rows,
    table_rows,
)
from tests.bench.counter_rows.tables import added
from tests.bench.counter_rows.wire import persist
from tests.bench.counter_rows.workload import MARKS, changes, marked, new_mailboxes

TWO = new_mailboxes(2)
STORED = {"table reads": 1.0, "table writes": 2.0, "paxos reads": 3.0, "paxos writes": 4.0}
RUN = Speed("counter", "hot", 1, 0, 100, 2.0, 1.0, 5.0, 300.0, 200.0, STORED, 0.5, 80.0, 0)


def summed(writes: list[CounterWrite]) -> dict[UUID, Counter[str]]:
    """What a table holds that counts each of these once."""
    book = Book()
    for write in writes:
        book.enter(write)
    return dict(book.meant)


def test_the_same_seed_gives_the_same_changes() -> None:
    first, again, other = (
        [(each.operation, each.owner, each.added) for each in itertools.islice(found, 200)]
        for found in (changes(1, TWO), changes(1, TWO), changes(2, TWO))
    )
    assert first == again != other
    assert {operation for operation, _, _ in first} == {"append", "flags", "expunge"}


def test_no_mailbox_ever_holds_fewer_than_no_messages_or_more_unseen_ones_than_messages() -> None:
    sums: Counter[tuple[object, str]] = Counter()
    for write in itertools.islice(changes(3, TWO), 2_000):
        assert write.added, "a change without an effect on counters is none of theirs"
        sums.update({(write.owner, column): number for column, number in write.added.items()})
        assert 0 <= sums[write.owner, "unseen"] <= sums[write.owner, "count"]


def test_marked_changes_are_told_apart() -> None:
    writes = marked(1, TWO)
    assert Counter(write.owner for write in writes) == dict.fromkeys(TWO, MARKS)
    assert verdict(writes, summed(writes)) == Verdict(2 * MARKS, 0, 0)
    assert max(each["count"] * 3 for each in summed(writes).values()) < 2**63


@pytest.mark.parametrize("place", [0, 1, MARKS - 1, MARKS, 2 * MARKS - 1])
def test_a_change_that_was_lost_or_doubled_is_found_wherever_it_is(place: int) -> None:
    writes = marked(1, TWO)
    lost = summed([*writes[:place], *writes[place + 1 :]])
    doubled = summed([*writes, writes[place]])
    both = summed([*writes[:place], *writes[place + 1 :], writes[place - 1]])
    assert verdict(writes, lost) == Verdict(len(writes), 1, 0)
    assert verdict(writes, doubled) == Verdict(len(writes), 0, 1)
    assert verdict(writes, both) == Verdict(len(writes), 1, 1)


def test_nothing_stored_is_everything_lost() -> None:
    assert verdict(marked(1, TWO), {}) == Verdict(2 * MARKS, 2 * MARKS, 0)


def test_how_often_a_change_was_counted_is_a_digit() -> None:
    assert [times_counted(0b11_00_10_01, place) for place in range(5)] == [1, 2, 0, 3, 0]


def test_the_book_names_each_mailbox_that_is_not_exact() -> None:
    first, second = TWO
    book = Book()
    for write in itertools.islice(changes(5, TWO), 100):
        book.enter(write)
    exact = {owner: dict(sums) for owner, sums in book.meant.items()}
    assert book.errors(exact) == {}
    off = {**exact, first: {**exact[first], "unseen": exact[first]["unseen"] + 2}}
    assert book.errors(off) == {first: {"unseen": 2}}
    missing = book.errors({first: exact[first]})
    assert missing[second]["count"] == -exact[second]["count"]
    (stranger,) = new_mailboxes(1)
    assert book.errors({**exact, stranger: {"count": 1}}) == {stranger: {"count": 1}}


def test_a_row_takes_each_change_once_in_whatever_batches_they_come() -> None:
    numbered = list(enumerate(itertools.islice(changes(1, TWO[:1]), 50), 1))
    whole = with_changes(Row(), numbered)
    assert whole.position == 50
    for end in range(50):
        half = with_changes(Row(), numbered[:end])
        assert with_changes(half, numbered) == whole
        assert with_changes(half, numbered[max(0, end - 5) :]) == whole
        assert with_changes(whole, numbered[:end]) == whole


def test_a_topic_keeps_the_order_and_gives_again_what_is_not_committed() -> None:
    topic, writes = Topic(), list(itertools.islice(changes(1, TWO), BATCH + 2))
    assert [topic.append(each) for each in writes] == list(range(1, len(writes) + 1))
    first = topic.after(topic.committed)
    assert first == list(enumerate(writes[:BATCH], 1)) == topic.after(topic.committed)
    topic.commit(first[-1][0])
    assert topic.after(topic.committed) == list(enumerate(writes[BATCH:], BATCH + 1))
    topic.commit(topic.end)
    topic.close()
    assert topic.after(topic.committed) == []


def test_what_a_change_adds_to_a_row_that_is_not_there() -> None:
    write = next(changes(1, TWO))
    assert added({"count": None, "unseen": None}, write) == {
        "count": 1,
        "unseen": write.added.get("unseen", 0),
    }


def test_a_writer_goes_on_until_it_is_answered_or_gives_up() -> None:
    tries = iter([TimeoutError(), TimeoutError(), None])

    def attempt() -> None:
        if (error := next(tries)) is not None:
            raise StatementTimeoutError from error

    assert not persist(attempt, ())
    assert persist(attempt, (0.0, 0.0))


def test_as_many_faults_are_met_as_were_planted() -> None:
    faults = planted_in(FaultKind.LOST_BUT_TIMED_OUT, seed=1, count=7, changes=2 * MARKS)
    met = [fault.kind for write in marked(1, TWO) if (fault := faults.meet(write))]
    assert met == [FaultKind.LOST_BUT_TIMED_OUT] * 7
    assert faults.ledger.progress() == (2 * MARKS, 7)


def test_faults_of_events_are_met_by_events_alone() -> None:
    faults = planted_in(FaultKind.DOUBLED, seed=1, count=3, changes=MARKS)
    writes = marked(1, TWO[:1])
    assert [fault for write in writes if (fault := faults.meet(write))] == []
    events = [replace(write, projection=EVENTS) for write in writes]
    assert len([fault for event in events if (fault := faults.meet(event))]) == 3


@pytest.mark.parametrize(
    ("share", "value"), [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)]
)
def test_a_percentile_is_a_value_that_was_measured(share: float, value: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], share) == value
    assert percentile([7.0], share) == 7.0
    assert percentile([], share) == 0.0


def test_a_spread_is_the_median_between_least_and_most() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([1234.4, 2.0]).told() == "618 (2–1,234)"
    assert Spread.of([0.5]).told(2) == "0.50 (0.50–0.50)"


def speeds() -> list[Speed]:
    """Counters and rows in two places; rows count half as fast in the first, later a fifth."""
    return [
        replace(RUN, name=name, shape=shape, writers=writers, repetition=number, changes=done)
        for number, slower in enumerate((2, 5))
        for shape in ("hot", "many")
        for writers in (4, 1)
        for name, done in (("counter", 100 * (number + 1)), ("LWT", 100 * (number + 1) // slower))
    ]


def test_ratios_are_taken_within_a_repetition() -> None:
    found = ratios(by_cell(speeds()), ("hot", 1, "LWT"), "counter", lambda run: run.rate)
    assert (found.least, found.most) == (0.2, 0.5)


def test_a_table_has_a_row_for_each_way_and_number_of_writers_of_its_shape() -> None:
    rows = table_rows(speeds(), "hot", "counter")
    assert [row[:2] for row in rows] == [
        [1, "counter"],
        [1, "LWT"],
        [4, "counter"],
        [4, "LWT"],
    ]
    assert {len(row) for row in rows} == {len(HEADER)}
    assert rows[0][2:4] == ["75 (50–100)", "1.00 (1.00–1.00)"]
    assert rows[1][2:4] == ["22 (20–25)", "0.35 (0.20–0.50)"]
    assert rows[1][-4:] == ["1.00", "2.00", "3.00", "4.00"]
    assert [len(row) for row in read_rows(speeds(), "many", 4)] == [len(READ_HEADER)] * 2


def harms() -> list[Harm]:
    return [
        Harm("counter", "killed", 0, 10, Verdict(100, 2, 0)),
        Harm("counter", "killed", 1, 10, Verdict(100, 4, 0)),
        Harm("stream", "killed", 0, 10, Verdict(100, 0, 0)),
        Harm("stream", "timed out", 0, 10, Verdict(100, 0, 3)),
    ]


def test_harm_is_told_by_way_and_disturbance() -> None:
    assert harm_rows(harms(), ["killed", "timed out"]) == [
        ["counter", "**6** lost (2–4), 0 doubled", "–"],
        ["stream", "0 lost, 0 doubled", "0 lost, **3** doubled (3–3)"],
    ]
    assert wrong_changes(harms(), "killed") == {"counter": (6, 0), "stream": (0, 0)}
    assert [planted_of(harms(), each) for each in ("killed", "timed out")] == [20, 10]


def test_the_picture_shows_the_fewest_writers_first() -> None:
    shown = bars(speeds(), "many", lambda run: run.writers * run.rate)
    assert list(shown) == ["counter", "LWT"]
    assert [each.most for each in shown["counter"]] == [100.0, 400.0]


def test_pictures_are_drawn(tmp_path: Path) -> None:
    draw_speeds(speeds(), tmp_path / "speeds.png")
    draw_harms(harms(), tmp_path / "harms.png")
    for each in tmp_path.iterdir():
        assert each.read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2
