"""The contract of tallies and rounds: the same for the fakes and for Cassandra."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import UUID

import pytest

from checkpoints.cassandra import CassandraRounds, CassandraTallies, Store
from checkpoints.tallies import Chunk, ChunkSums, Rounds, Tallies
from reconcilers.declared.tally import NOTHING, Sum, Sums
from reconcilers.words.errors import Retryable
from tests.contract.making import HOUR, SetClock, an_hour_of_its_own
from tests.fakes.checkpoints.tallies import MemoryRounds, MemoryTallies

AT = 1_700_000_000_000_000
WIDTH = 1000
TALLY = "mailbox_counters"
CLAIMANTS = 12


@pytest.fixture
def clock() -> SetClock:
    """At an hour that no other test has: what is marked by the hour is this test's only."""
    return SetClock(an_hour_of_its_own())


@pytest.fixture
def tallies(real: Store | None, clock: SetClock) -> Tallies:
    return MemoryTallies() if real is None else CassandraTallies(real, WIDTH)


@pytest.fixture
def rounds(real: Store | None) -> Rounds:
    return MemoryRounds() if real is None else CassandraRounds(real)


@pytest.fixture
def key() -> str:
    return f"#private&{uuid.uuid4().hex}"


def sums(count: int, unseen: int = 0, size: int = 0) -> Sums:
    return {Sum.COUNT: count, Sum.UNSEEN: unseen, Sum.SIZE: size}


# --- marks and counts ----------------------------------------------------------------------------


def test_of_a_mailbox_that_nobody_counted_nothing_is_known(tallies: Tallies, mailbox: UUID) -> None:
    assert tallies.of_mailbox(mailbox) == ChunkSums({}, whole=False)


def test_a_mark_stands_until_its_chunk_is_counted(tallies: Tallies, mailbox: UUID) -> None:
    tallies.mark({mailbox: {0, 7}}, AT)
    assert tallies.of_mailbox(mailbox) == ChunkSums(
        {0: Chunk(marked_at=AT), 7: Chunk(marked_at=AT)}, whole=False
    )
    tallies.counted({mailbox: {7: sums(3, 1, 2**40)}}, AT + 5)
    book = tallies.of_mailbox(mailbox)
    assert book.chunks[7] == Chunk(sums(3, 1, 2**40), counted_at=AT + 5, marked_at=AT)
    assert book.chunks[0] == Chunk(marked_at=AT)
    assert not book.whole
    assert book.chunks[0].stale(0)
    assert not book.chunks[7].stale(4)
    assert book.chunks[7].stale(5)


def test_what_was_counted_is_stale_once_it_is_marked_later(tallies: Tallies, mailbox: UUID) -> None:
    tallies.counted({mailbox: {0: sums(3)}}, AT)
    assert tallies.of_mailbox(mailbox).chunks == {0: Chunk(sums(3), counted_at=AT)}
    assert not tallies.of_mailbox(mailbox).chunks[0].stale(0)
    tallies.mark({mailbox: [0]}, AT + 1)
    chunk = tallies.of_mailbox(mailbox).chunks[0]
    assert chunk == Chunk(sums(3), counted_at=AT, marked_at=AT + 1)
    assert chunk.stale(0)


def test_a_late_count_never_replaces_a_newer_one(tallies: Tallies, mailbox: UUID) -> None:
    tallies.counted({mailbox: {0: sums(5, 2, 100), 1: sums(9)}}, AT + 10)
    tallies.counted({mailbox: {0: sums(7, 3, 900), 2: sums(1)}}, AT)
    assert tallies.of_mailbox(mailbox).chunks == {
        0: Chunk(sums(5, 2, 100), AT + 10),
        1: Chunk(sums(9), AT + 10),
        2: Chunk(sums(1), AT),
    }
    tallies.counted({mailbox: {0: sums(4, 0, 50)}}, AT + 11)
    assert tallies.of_mailbox(mailbox).chunks[0] == Chunk(sums(4, 0, 50), AT + 11)


def test_marks_never_go_back(tallies: Tallies, mailbox: UUID) -> None:
    tallies.mark({mailbox: [0]}, AT + 10)
    tallies.mark({mailbox: [0, 1]}, AT)
    chunks = tallies.of_mailbox(mailbox).chunks
    assert (chunks[0].marked_at, chunks[1].marked_at) == (AT + 10, AT)
    tallies.mark({mailbox: [1]}, AT + 11)
    assert tallies.of_mailbox(mailbox).chunks[1].marked_at == AT + 11


def test_a_count_leaves_marks_alone_and_a_mark_counts(tallies: Tallies, mailbox: UUID) -> None:
    """Whichever is written last: each has a time of its own."""
    tallies.mark({mailbox: [0]}, AT + 10)
    tallies.counted({mailbox: {0: sums(5)}}, AT)
    tallies.mark({mailbox: [1]}, AT)
    tallies.counted({mailbox: {1: sums(6)}}, AT + 10)
    assert tallies.of_mailbox(mailbox).chunks == {
        0: Chunk(sums(5), counted_at=AT, marked_at=AT + 10),
        1: Chunk(sums(6), counted_at=AT + 10, marked_at=AT),
    }


# --- a whole mailbox -----------------------------------------------------------------------------


def test_a_mailbox_that_was_counted_whole_says_so(tallies: Tallies, mailbox: UUID) -> None:
    tallies.counted_whole({mailbox: {0: sums(1000), 3: sums(2)}}, AT)
    assert tallies.of_mailbox(mailbox) == ChunkSums(
        {0: Chunk(sums(1000), AT), 3: Chunk(sums(2), AT)}, whole=True
    )
    tallies.counted({mailbox: {3: sums(1)}}, AT + 1)
    tallies.mark({mailbox: [4]}, AT + 1)
    book = tallies.of_mailbox(mailbox)
    assert book.whole
    assert book.chunks[3] == Chunk(sums(1), AT + 1)
    assert book.chunks[4] == Chunk(marked_at=AT + 1)


def test_many_mailboxes_are_counted_and_read_together(tallies: Tallies) -> None:
    whole, part, unknown = ([uuid.uuid4() for _ in range(each)] for each in (120, 30, 1))
    tallies.mark({whole[0]: [7]}, AT - 1)
    tallies.counted_whole({each: {0: sums(number)} for number, each in enumerate(whole)}, AT)
    tallies.counted({each: {2: sums(5), 3: sums(6)} for each in part}, AT)
    books = tallies.of_mailboxes([*whole, *part, *unknown])
    assert books == {each: tallies.of_mailbox(each) for each in [*whole, *part]}
    assert [books[each].chunks[0] for each in whole[1:3]] == [
        Chunk(sums(1), AT),
        Chunk(sums(2), AT),
    ]
    assert books[whole[0]].chunks[7] == Chunk(NOTHING, AT, marked_at=AT - 1)
    assert {books[each].whole for each in whole} == {True}
    assert {books[each].whole for each in part} == {False}


def test_an_empty_mailbox_can_be_counted_whole(tallies: Tallies, mailbox: UUID) -> None:
    tallies.counted_whole({mailbox: {}}, AT)
    assert tallies.of_mailbox(mailbox) == ChunkSums({}, whole=True)


def test_chunks_that_a_whole_count_does_not_name_are_empty(tallies: Tallies, mailbox: UUID) -> None:
    tallies.counted({mailbox: {0: sums(5), 1: sums(6)}}, AT)
    tallies.mark({mailbox: [1, 2]}, AT + 1)
    tallies.counted_whole({mailbox: {0: sums(4)}}, AT + 2)
    assert tallies.of_mailbox(mailbox) == ChunkSums(
        {
            0: Chunk(sums(4), AT + 2),
            1: Chunk(NOTHING, AT + 2, AT + 1),
            2: Chunk(NOTHING, AT + 2, AT + 1),
        },
        whole=True,
    )


def test_a_late_whole_count_empties_nothing_that_was_counted_since(
    tallies: Tallies, mailbox: UUID
) -> None:
    tallies.counted({mailbox: {0: sums(5), 1: sums(6)}}, AT + 10)
    tallies.counted_whole({mailbox: {0: sums(4)}}, AT)
    book = tallies.of_mailbox(mailbox)
    assert book.whole
    assert book.chunks == {0: Chunk(sums(5), AT + 10), 1: Chunk(sums(6), AT + 10)}


def test_when_a_mailbox_was_counted_whole(tallies: Tallies, mailbox: UUID) -> None:
    assert tallies.of_mailbox(mailbox).whole_at is None
    tallies.counted_whole({mailbox: {0: sums(1)}}, AT)
    tallies.counted({mailbox: {0: sums(2)}}, AT + 5)
    assert tallies.of_mailbox(mailbox).whole_at == AT
    tallies.counted_whole({mailbox: {}}, AT + 7)
    assert tallies.of_mailbox(mailbox).whole_at == AT + 7


def test_marks_are_of_one_width_since_it_was_first_asked_for(tallies: Tallies) -> None:
    at = time.time_ns() // 1000
    assert tallies.marked_in_this_width_since(at) == at
    assert tallies.marked_in_this_width_since(at + 1) == at


def test_another_width_begins_anew_and_so_does_the_first_after_it(store: Store) -> None:
    """What was counted in between is not marked in the first."""
    at = time.time_ns() // 1000
    narrow, wide = CassandraTallies(store, 77), CassandraTallies(store, 777)
    assert narrow.marked_in_this_width_since(at) == at
    assert wide.marked_in_this_width_since(at + 1) == at + 1
    assert wide.marked_in_this_width_since(at + 2) == at + 1
    assert narrow.marked_in_this_width_since(at + 3) == at + 3


# --- marks by time -------------------------------------------------------------------------------


def test_the_mailboxes_that_were_marked_in_an_hour(tallies: Tallies, clock: SetClock) -> None:
    early, first, second, last = (uuid.uuid1() for _ in range(4))
    hour = clock.now // HOUR
    for mailbox, at in ((early, -1), (first, 0), (second, HOUR - 1), (last, HOUR)):
        tallies.mark({mailbox: [0]}, hour * HOUR + at)
    assert [set(tallies.marked_in(hour + each)) for each in (-1, 0, 1, 2)] == [
        {early},
        {first, second},
        {last},
        set(),
    ]


def test_a_mailbox_that_is_marked_often_is_noted_each_hour(
    tallies: Tallies, clock: SetClock
) -> None:
    mailbox = uuid.uuid1()
    for hour in range(3):
        tallies.mark({mailbox: [hour, hour + 1]}, clock.now + hour * HOUR)
    for hour in range(3):
        assert list(tallies.marked_in(clock.now // HOUR + hour)) == [mailbox]


def test_without_a_mark_nobody_is_named(tallies: Tallies, clock: SetClock, mailbox: UUID) -> None:
    tallies.counted_whole({mailbox: {0: sums(1)}}, clock.now)
    tallies.mark({}, clock.now)
    assert list(tallies.marked_in(clock.now // HOUR)) == []


def test_thousands_of_marks_at_once(tallies: Tallies, clock: SetClock) -> None:
    """More than a batch may hold: of many mailboxes, and of one that is very large."""
    large, *others = touched = {
        uuid.uuid1(): range(3000),
        **{uuid.uuid1(): range(number, number + 5) for number in range(400)},
    }
    tallies.mark(touched, clock.now)
    assert set(tallies.marked_in(clock.now // HOUR)) == touched.keys()
    assert tallies.of_mailbox(large).chunks == {
        number: Chunk(marked_at=clock.now) for number in range(3000)
    }
    for number, mailbox in enumerate(others):
        assert tallies.of_mailbox(mailbox).chunks.keys() == set(range(number, number + 5))


def test_thousands_of_counts_at_once(tallies: Tallies, mailbox: UUID) -> None:
    counts = {number: sums(number, 1, 2) for number in range(2500)}
    tallies.counted_whole({mailbox: counts}, AT)
    book = tallies.of_mailbox(mailbox)
    assert book == ChunkSums(
        {number: Chunk(each, AT) for number, each in counts.items()}, whole=True
    )


# --- of Cassandra only ---------------------------------------------------------------------------


@pytest.mark.stack
def test_with_another_width_everything_is_counted_anew(
    store: Store, clock: SetClock, mailbox: UUID
) -> None:
    wide, narrow = (CassandraTallies(store, width) for width in (WIDTH, WIDTH // 10))
    wide.mark({mailbox: [1]}, clock.now)
    wide.counted_whole({mailbox: {0: sums(5)}}, AT)
    assert narrow.of_mailbox(mailbox) == ChunkSums({}, whole=False)
    narrow.counted_whole({mailbox: {9: sums(5)}}, AT + 1)
    assert narrow.of_mailbox(mailbox) == ChunkSums({9: Chunk(sums(5), AT + 1)}, whole=True)
    assert wide.of_mailbox(mailbox).chunks.keys() == {0, 1}
    assert set(narrow.marked_in(clock.now // HOUR)) == {mailbox}


@pytest.mark.stack
def test_another_process_knows_it_too(store: Store, clock: SetClock, mailbox: UUID) -> None:
    CassandraTallies(store, WIDTH).counted_whole({mailbox: {0: sums(5)}}, AT)
    assert CassandraTallies(store, WIDTH).of_mailbox(mailbox).whole


# --- rounds --------------------------------------------------------------------------------------


def test_the_first_claim_succeeds_once(rounds: Rounds, key: str) -> None:
    assert rounds.current(TALLY, key) == 0
    assert rounds.claim(TALLY, key, after=0)
    assert rounds.current(TALLY, key) == 1
    assert not rounds.claim(TALLY, key, after=0)
    assert rounds.current(TALLY, key) == 1


def test_each_claim_follows_the_one_before(rounds: Rounds, key: str) -> None:
    for claimed in range(4):
        assert rounds.claim(TALLY, key, after=claimed)
        assert rounds.current(TALLY, key) == claimed + 1


def test_a_claim_with_an_old_round_fails_and_changes_nothing(rounds: Rounds, key: str) -> None:
    for claimed in range(3):
        rounds.claim(TALLY, key, after=claimed)
    for old in (0, 1, 2):
        assert not rounds.claim(TALLY, key, after=old)
    assert rounds.current(TALLY, key) == 3


def test_a_claim_with_a_round_that_is_not_there_yet_fails(rounds: Rounds, key: str) -> None:
    assert not rounds.claim(TALLY, key, after=1)
    assert rounds.current(TALLY, key) == 0
    assert rounds.claim(TALLY, key, after=0)
    assert not rounds.claim(TALLY, key, after=2)


def test_tallies_and_keys_are_apart(rounds: Rounds, key: str) -> None:
    rounds.claim(TALLY, key, after=0)
    assert rounds.current("current_quota", key) == 0
    assert rounds.current(TALLY, f"{key}2") == 0
    assert rounds.claim("current_quota", key, after=0)


@pytest.mark.parametrize("after", [0, 1])
def test_of_many_at_once_exactly_one_claims_a_round(rounds: Rounds, key: str, after: int) -> None:
    for claimed in range(after):
        rounds.claim(TALLY, key, after=claimed)
    together = Barrier(CLAIMANTS)

    def claim(_number: int) -> str:
        together.wait(60)
        try:
            return "won" if rounds.claim(TALLY, key, after) else "lost"
        except Retryable:
            return "unknown"  # the one that won may be among these

    with ThreadPoolExecutor(CLAIMANTS) as threads:
        answers = list(threads.map(claim, range(CLAIMANTS)))
    assert rounds.current(TALLY, key) == after + 1
    assert answers.count("won") <= 1
    assert "won" in answers or "unknown" in answers
    assert not rounds.claim(TALLY, key, after)
