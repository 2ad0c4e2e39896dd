"""The journal and others in memory, where the contract needs no server to be told apart."""

from __future__ import annotations

from checkpoints.bookmarks import Bookmark, KafkaIds
from checkpoints.tallies import Chunk
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import keeping
from reconcilers.declared.tally import NOTHING, Sum
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind
from tests.builders.found import finding_at
from tests.builders.rows import MAILBOX, NOW, SLOT
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.progress import MemoryBookmarks
from tests.fakes.checkpoints.tallies import MemoryTallies


def finding(projection: str) -> Finding:
    return finding_at(SLOT, Kind.EXTRA_ROW, State.HELD, projection=projection)


def test_a_finding_of_what_is_not_declared_any_more_is_not_listed() -> None:
    journal = MemoryJournal(lambda: NOW)
    for name in ("messages", "deleted_uids"):
        journal.put(finding(name))
    assert list(journal.open_findings(keeping(MESSAGE, ()))) == [finding("messages")]
    assert len(list(journal.open_findings(MESSAGE))) == 2


def test_a_breaker_is_open_for_its_earliest_reason() -> None:
    journal = MemoryJournal(lambda: NOW)
    for at, reason in ((20, "later"), (10, "earlier"), (30, "last")):
        journal.open_breaker(Breaker.REPAIRS, reason, at)
    assert journal.breakers() == {Breaker.REPAIRS: "earlier"}


def test_the_first_bookmark_is_recorded_at_its_own_time() -> None:
    bookmarks = MemoryBookmarks(lambda: 0)
    times = [bookmarks.record(Bookmark("message", {})).recorded_at for _ in range(3)]
    assert times == [0, 1, 2]


def test_a_bookmark_tells_of_no_topic_time_or_name_until_it_has_one() -> None:
    plain = Bookmark("message", {})
    assert plain == Bookmark("message", {}, ids=KafkaIds("", {}), recorded_at=0, name="")


def test_a_chunk_was_never_counted_until_it_was() -> None:
    assert Chunk() == Chunk(sums=None, counted_at=None, marked_at=None)
    assert Chunk().stale(0)


def test_of_two_counts_that_began_at_once_the_later_stays() -> None:
    tallies = MemoryTallies()
    for count in (1, 2):
        tallies.counted({MAILBOX: {0: {**NOTHING, Sum.COUNT: count}}}, NOW)
    assert tallies.of_mailbox(MAILBOX).chunks[0].sums == {**NOTHING, Sum.COUNT: 2}
