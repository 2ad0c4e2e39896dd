"""`reconcile doctor` names bookmarks from which no whole replay is possible any more."""

from typing import cast

import pytest

from checkpoints.bookmarks import Bookmark, Positions
from reconcilers.declared.families.message import MESSAGE
from reconcilers.words.errors import ReconcilerError, Refused, Unreachable
from streaming.commands.doctor.checks import bookmarks as checks
from streaming.commands.doctor.checks.bookmarks import bookmarks, too_old
from streaming.commands.doctor.checks.check import KafkaContext, Level
from streaming.settings import Settings
from streaming.topics import Watcher

KEPT = {"james": {0: 100, 1: 50}}


def named(name: str, settled: Positions) -> Bookmark:
    return Bookmark("ks/message/repair", settled, recorded_at=1_700_000_000_000_000, name=name)


BEFORE = named("before", {("james", 0): 90, ("james", 1): 60})
AFTER = named("after", {("james", 0): 100, ("james", 1): 50})


def test_a_bookmark_before_the_oldest_record_is_a_warning() -> None:
    (found,) = too_old([BEFORE, AFTER], KEPT)
    assert found.level is Level.WARNING
    assert found.what.startswith("bookmark before of 2023-11-14T22:13:20")
    assert "Kafka has deleted 10 records after it" in found.what
    assert "reconcile bookmark --delete before" in found.advice


def test_a_topic_that_is_not_read_any_more_counts_nothing() -> None:
    assert list(too_old([named("old", {("other", 0): 1})], KEPT)) == []


class Kafka:
    def missing(self, topics: list[str]) -> list[str]:
        return []

    def beginning_offsets(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {each: KEPT[each] for each in topics}


CONTEXT = KafkaContext(Settings(), (MESSAGE,), cast(Watcher, Kafka()))


def test_the_bookmarks_of_the_stream_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_named", lambda *_: [BEFORE])
    assert [each.level for each in bookmarks(CONTEXT)] == [Level.WARNING]


@pytest.mark.parametrize("error", [Unreachable, Refused])
def test_a_cassandra_that_cannot_be_read_is_not_told_again(
    monkeypatch: pytest.MonkeyPatch, error: type[ReconcilerError]
) -> None:
    def fails(*_: object) -> list[Bookmark]:
        raise error("no")

    monkeypatch.setattr(checks, "_named", fails)
    assert list(bookmarks(CONTEXT)) == []
