"""One job for all families on real Spark: who is named where, and what the canaries say."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.sql import DataFrame, SparkSession

from checkpoints.bookmarks import OffsetRanges
from reconcilers.declared.families.mailbox import MAILBOX as MAILBOXES
from reconcilers.words.model import Slot, look_again
from streaming.pipeline.record_search import KEPT, KEPT_FOR, RecordSearch, SearchedReader
from streaming.pipeline.worker import BatchLook
from tests.builders.rights import BOB, FROM_EVENTS, SHARED, place
from tests.builders.rows import MESSAGE_ID, SECOND
from tests.spark.records import CANARIES, COLUMNS, SUSPECTS, TOPIC, Record, event, published
from tests.spark.test_envelope import canary

RIGHT = event("usermailboxacl", "u", {"username": BOB, "mailboxid": str(SHARED)})
MESSAGE = event("imapuidtable", "i", {"messageid": str(MESSAGE_ID)})
AGAIN = published(FROM_EVENTS, look_again(place(), "user_rights"))
RANGES: OffsetRanges = {(TOPIC, 0): (10, 20), (SUSPECTS, 0): (5, 6)}
APART: frozenset[Slot] = frozenset()


@dataclass
class Kafka:
    """Records by their offsets, and which ranges were read."""

    spark: SparkSession
    records: dict[int, Record] = field(default_factory=dict)
    reads: list[OffsetRanges] = field(default_factory=list)
    now: float = 0.0

    def read(self, ranges: OffsetRanges) -> DataFrame:
        self.reads.append(ranges)
        placed = [(topic, at, offset, *kv) for offset, (topic, at, _, *kv) in self.records.items()]
        return self.spark.createDataFrame(placed, COLUMNS)

    def search(self) -> RecordSearch:
        return RecordSearch(
            self.read, [FROM_EVENTS, MAILBOXES], CANARIES, 600 * SECOND, lambda: self.now
        )


@dataclass
class Reader:
    """Takes down what it is to look at."""

    looked: list[OffsetRanges] = field(default_factory=list)

    def look(self, ranges: OffsetRanges, apart: frozenset[Slot]) -> BatchLook:
        assert apart is APART
        self.looked.append(ranges)
        return BatchLook(examined=1)


@pytest.fixture
def kafka(spark: SparkSession) -> Kafka:
    return Kafka(spark)


def test_a_family_reads_from_its_first_record_to_its_last(kafka: Kafka) -> None:
    kafka.records = {10: MESSAGE, 12: RIGHT, 13: MESSAGE, 15: RIGHT, 17: MESSAGE, 5: AGAIN}
    found = kafka.search().of(RANGES)
    assert found.parts == {
        FROM_EVENTS.name: {(TOPIC, 0): (12, 16), (SUSPECTS, 0): (5, 6)},
        MAILBOXES.name: {},
    }
    assert found.echoes == []


def test_where_nothing_names_the_family_the_canaries_are_heard_without_a_look(
    kafka: Kafka,
) -> None:
    tombstone = (*MESSAGE[:-1], None)
    kafka.records = {10: canary(), 11: MESSAGE, 12: tombstone, 14: canary(number=18)}
    reader = Reader()
    look = SearchedReader(FROM_EVENTS.name, kafka.search(), reader).look(RANGES, APART)
    assert (look.examined, reader.looked) == (0, [])
    assert [(each.previous, len(each.runs)) for each in look.echoes] == [(16, 1)]


def test_canaries_outside_the_part_of_the_family_are_heard_with_its_look(kafka: Kafka) -> None:
    kafka.records = {10: canary(), 12: RIGHT, 14: canary(number=18)}
    reader = Reader()
    look = SearchedReader(FROM_EVENTS.name, kafka.search(), reader).look(RANGES, APART)
    assert (look.examined, reader.looked) == (1, [{(TOPIC, 0): (12, 13)}])
    assert [each.runs[0].reached.number for each in look.echoes] == [18]


def test_canaries_that_are_not_ours_or_cannot_be_read_are_left_out(kafka: Kafka) -> None:
    """A second installation on the same agents has canaries of its own."""
    foreign = event("canary", "i", {"place": "node/0", "lane": 0}, {"number": {"value": 5}})
    kafka.records = {10: canary(number="seventeen"), 11: foreign, 12: canary(op="d"), 13: canary()}
    reader = Reader()
    look = SearchedReader(FROM_EVENTS.name, kafka.search(), reader).look(RANGES, APART)
    assert reader.looked == []
    assert [each.runs[0].reached.number for each in look.echoes] == [17]


def test_a_range_is_searched_once_for_all_families(kafka: Kafka) -> None:
    kafka.records = {10: MESSAGE}
    search, reader = kafka.search(), Reader()
    for family in (FROM_EVENTS, MAILBOXES, FROM_EVENTS):
        SearchedReader(family.name, search, reader).look(RANGES, APART)
    assert kafka.reads == [RANGES]
    kafka.now = KEPT_FOR
    search.of(RANGES)
    assert len(kafka.reads) == 2, "the topic may have been made again since"
    for begin in range(2 * KEPT):
        search.of({(TOPIC, 0): (begin, 20)})
    assert len(search._known) <= KEPT + 1, "a stream that runs for months keeps no more"
