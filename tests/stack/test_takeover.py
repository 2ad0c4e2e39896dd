"""What commit 258deba left is taken over: nothing is forgotten, nothing is sent twice.

The frozen rows and records stand in `takeover/`. All is asked by the ports, not of tables: a later
step may keep it elsewhere.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.batch_bookmarks import safe_start
from checkpoints.bookmarks import Offsets
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraExpiries,
    CassandraJournal,
    CassandraLineage,
    CassandraRounds,
    CassandraTallies,
    Store,
)
from checkpoints.clock import now_micros
from checkpoints.codec import finding_from_json
from checkpoints.schema.upgrade import read_gap, upgrade
from deploy import captured
from deploy.mailserver import james
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Sums
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.errors import AlreadyRunning
from reconcilers.words.key import as_json
from reconcilers.words.model import Kind, Slot
from streaming.settings import load
from streaming.tables import disconnect
from streaming.tables.own_keyspace import make_own, open_own
from tests.endpoints import Endpoints
from tests.fakes.dying_store import DyingStore
from tests.fakes.schema_store import Killed
from tests.stack.conftest import TALLIES
from tests.stack.counted import Counted
from tests.stack.scenes import Scene, cells
from tests.stack.streams import Stream, until, write_settings
from tests.stack.takeover.left import DAY_US, LeftBehind, left_behind

pytestmark = pytest.mark.stack

FAMILY: dict[str, Family] = {family.name: family for family in FAMILIES}
WINDOW_MS = 1_000
CHUNK = 1_000
WHOLE_RANGE = -1
"""Stood for the UID of a truth delete that named none."""
DELAY = 15
"""D, seconds: long, for a counter is judged only while batches come faster than this."""
NEWER_KINDS = {
    Kind.UNREADABLE,
    Kind.INCOMPLETE_IN_BOTH,
    Kind.ABSENT_WITHOUT_DELETE,
    Kind.TRUTH_LOST_ROWS,
    Kind.PAST_ROWS,
    Kind.CONTENT_LOST,
    Kind.SYSTEMATIC,
}
"""Those that the version which left the rows did not have."""
SLOW = 600.0
"""Seconds to wait for what takes a start of Spark and its first batch, on a busy machine too."""


@pytest.fixture
def left(cassandra: Session) -> Iterator[LeftBehind]:
    """The rows, in keyspaces of the test's own; nobody has taken them over yet."""
    name = uuid.uuid4().hex[:8]
    left = left_behind(f"left_{name}", f"left_{name}_own", now_micros())
    left.put_rows(cassandra)
    yield left
    for keyspace in (left.keyspace, left.own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=120)


@pytest.fixture
def config(left: LeftBehind, stack: Endpoints, tmp_path: Path) -> Iterator[Path]:
    tally = {**TALLIES, "max_update_lag": DELAY}
    changes: dict[str, dict[str, Any]] = {"stream": {"delay": DELAY}, "tally": tally}
    file = write_settings(tmp_path / "reconcile.toml", stack, left.keyspace, left.own, changes)
    yield file
    disconnect(load(file, {}).cassandra)


def bookmarks_of(left: LeftBehind, store: Store) -> tuple[CassandraBookmarks, str]:
    return CassandraBookmarks(store), f"{left.keyspace}/message/repair"


def expected_findings(left: LeftBehind) -> dict[tuple[str, str, Slot], Finding]:
    told = [
        finding_from_json(at_its_own_key(each), FAMILY[each["family"]])
        for each in left.said["findings"]
    ]
    return {(each.family, each.projection, each.slot): each for each in told}


def at_its_own_key(said: dict[str, Any]) -> dict[str, Any]:
    """A finding as it is to be read now: that of a counter, or a table, had no key of its own."""
    now: dict[str, Any] = said | {"writes": [dict(write) for write in said["writes"]]}
    if (said["mailboxid"], said["uid"]) == (str(UUID(int=0)), 0):
        return now | dict.fromkeys(("mailboxid", "uid", "quotaroot"))
    if said["family"] == "user_tally":
        for each in (now, *now["writes"]):
            each["quotaroot"] = said["messageid"]
    if said["family"] != "message":
        now["messageid"] = None
    return now


def open_findings(journal: CassandraJournal) -> dict[tuple[str, str, Slot], Finding]:
    return {
        (each.family, each.projection, each.slot): each
        for family in FAMILIES
        for each in journal.open_findings(family)
    }


def entry(told: list[Any]) -> Entry:
    messageid, mailboxid, uid, in_truth, recorded_at, expiring = told
    slot = Slot(UUID(mailboxid), uid)
    return Entry(UUID(messageid), slot, in_truth, recorded_at, expiring)


def finish(left: LeftBehind, store: Store) -> None:
    """Take it over, as soon as the lease of the killed stream has ended."""

    def finished() -> bool:
        try:
            upgrade(store)
        except AlreadyRunning:
            return False
        return True

    until("the lease of the killed stream has ended", finished)


def assert_nothing_is_forgotten(left: LeftBehind, store: Store) -> None:
    assert_findings(left, CassandraJournal(store, scope=left.keyspace))
    assert_memory(left, store)
    assert_counters(left, store)
    assert_bookmarks(left, store)


def assert_findings(left: LeftBehind, journal: CassandraJournal) -> None:
    expected = expected_findings(left)
    assert open_findings(journal) == expected
    assert {each.kind for each in expected.values()} == set(Kind) - NEWER_KINDS
    assert {each.state for each in expected.values()} >= {
        State.INTENDED,
        State.STUCK,
        State.REPORTED,
        State.HELD,
        State.OBSERVED,
    }
    for family in FAMILIES:
        for name in family.names:
            here = {
                key[2]: each for key, each in expected.items() if key[:2] == (family.name, name)
            }
            assert journal.recall(family, name, here) == here
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=back) for back in range(4)]
    assert sum(1 for day in days for _ in journal.log(day)) == left.said["log"]
    assert {each.value: why for each, why in journal.breakers().items()} == left.said["breakers"]


def assert_memory(left: LeftBehind, store: Store) -> None:
    lineage, said = CassandraLineage(store), left.said
    entries = set(map(entry, said["of_messages"]))
    by_message = lineage.of_sources([each.source for each in entries])
    assert {each for found in by_message.values() for each in found} == entries
    by_slot = lineage.of_slots([each.slot for each in entries])
    found_by_slot = {each for found in by_slot.values() for each in found}
    assert found_by_slot == set(map(entry, said["of_slots"]))
    assert {True, False} == {each.expiring for each in entries}
    for messageid, mailboxid, uid, at in said["truth_deletes"]:
        heard = lineage.truth_deletes(UUID(messageid), UUID(mailboxid))
        of_row = heard.by_slot.get(Slot(UUID(mailboxid), uid), frozenset())
        assert at in (heard.ranges if uid == WHOLE_RANGE else of_row)
    for mailboxid, uid, at in said["projection_deletes"]:
        assert at in lineage.projection_deletes(Slot(UUID(mailboxid), uid)).received
    for mailboxid in said["deletes_in_mailbox"]:
        assert lineage.truth_deletes_in_group(UUID(mailboxid), 1, now_micros())
    assert lineage.watching() == Watching(said["watched_since"])
    now = now_micros()
    expiries = list(CassandraExpiries(store).between(now - DAY_US, now + 5 * DAY_US))
    assert [
        [*map(as_json, each.slot.key), as_json(each.source), each.due] for each in expiries
    ] == said["expiries"]


def assert_counters(left: LeftBehind, store: Store) -> None:
    rounds, tallies = CassandraRounds(store), CassandraTallies(store, CHUNK)
    assert len(left.said["rounds"]) == 3
    for tally, key, claimed in left.said["rounds"]:
        assert rounds.current(tally, key) == claimed
        assert not rounds.claim(tally, key, claimed - 1), "a correction could be sent twice"
    for mailboxid, told in left.said["tallies"].items():
        found = tallies.of_mailbox(UUID(mailboxid))
        assert found.whole == told["whole"]
        assert {
            str(number): [
                by_name(chunk.sums),
                chunk.counted_at,
                chunk.marked_at,
            ]
            for number, chunk in found.chunks.items()
        } == told["chunks"]
    marked = {str(each) for each in tallies.marked_since(now_micros() - 2 * DAY_US)}
    assert marked == set(left.said["marked"])


def by_name(sums: Sums | None) -> dict[str, int] | None:
    """As JSON has them."""
    return None if sums is None else {each.value: count for each, count in sums.items()}


def assert_bookmarks(left: LeftBehind, store: Store) -> None:
    bookmarks, stream = bookmarks_of(left, store)
    assert bookmarks.newest(stream) is None, "nobody has settled an offset yet"
    recent = bookmarks.of_batches(stream)
    assert len(recent) == left.said["bookmarks"]
    begins = safe_start(recent, WINDOW_MS)
    assert begins is not None
    assert as_text(begins) == left.said["safe_start"]
    named = bookmarks.named(stream, "before the upgrade")
    assert named is not None
    assert named.recorded_at == left.said["named_bookmark"]


def as_text(offsets: Offsets) -> dict[str, dict[str, int]]:
    """As JSON has it."""
    return {
        topic: {str(number): offset for number, offset in partitions.items()}
        for topic, partitions in offsets.items()
    }


def test_nothing_is_forgotten(left: LeftBehind, cassandra: Session) -> None:
    store = Store(cassandra, left.own)
    assert read_gap(store).todo
    finish(left, store)
    assert read_gap(store).todo == ()
    assert_nothing_is_forgotten(left, store)


@pytest.mark.long(part="checkpoints")
def test_killed_midway_again_and_again_it_ends_the_same(
    left: LeftBehind, cassandra: Session
) -> None:
    lives = 0

    def finished() -> bool:
        """One more run, which dies one change later than the one before."""
        nonlocal lives
        try:
            upgrade(DyingStore(cassandra, left.own, lives))
        except Killed:
            lives += 1
            return False
        except AlreadyRunning:
            return False
        return True

    until("a run lives long enough to finish", finished, patience=SLOW)
    assert lives >= 2
    assert_nothing_is_forgotten(left, Store(cassandra, left.own))


@pytest.mark.long(part="checkpoints")
def test_a_stream_goes_on_where_the_first_version_was_killed(
    left: LeftBehind, config: Path, cassandra: Session, stack: Endpoints
) -> None:
    james.create_schema(cassandra, left.keyspace)  # no CDC: the events are the ones that were left
    left.put_records(stack)
    stream = Stream(config)
    scene = Scene(cassandra, stack, left.keyspace, left.own, stream)
    tried_again = left.place_of_the_dead_letter()
    for place in (*left.read, *left.unread, *left.suspected, tried_again):
        scene.write_truth(place, cells())
    corrected = corrected_counter(left, scene)
    settings = load(config, {})
    until("it can be taken over", lambda: can_begin(config))
    journal = open_own(settings).journal
    assert open_findings(journal) == expected_findings(left)

    with stream:
        for place in (*left.unread, *left.suspected):
            until(f"{place} was repaired", partial(scene.agrees, place), SLOW)
        assert stream.said("going on where the version before was safe")
        for place in (*left.read, tried_again):
            assert scene.lacks(place.row), "what stood before the safe start was read again"
        retried = scene.command("findings", "--retry-dead-letters")
        assert retried.returncode == 0, retried.stderr
        topic, partition, offset = left.dead_letter
        assert f"retried  {topic}/{partition} offset {offset}" in retried.stdout
        until("the dead letter's record was looked at", lambda: scene.agrees(tried_again), SLOW)
        for table in captured.TABLES:  # without capture no counter is judged
            cassandra.execute(f"ALTER TABLE {left.keyspace}.{table} WITH cdc = true")
        await_right(corrected, journal)
        assert journal.breakers().keys() == {"removals"}
        assert stream.stop() == 0
    rounds = CassandraRounds(Store(cassandra, left.own))
    for tally, key, claimed in left.said["rounds"]:
        assert rounds.current(tally, key) == claimed, "a correction was sent twice"


def can_begin(config: Path) -> bool:
    """Whether the lease of the killed stream has ended; then it is taken over."""
    try:
        make_own(load(config, {}).cassandra)
    except AlreadyRunning:
        return False
    return True


def corrected_counter(left: LeftBehind, scene: Scene) -> Counted:
    """The mailbox whose counter was corrected right before the stream was killed: it is right."""
    (mailboxid,) = (
        UUID(each["mailboxid"])
        for each in left.said["findings"]
        if (each["projection"], each["state"]) == ("mailbox_counters", "intended")
    )
    return Counted(scene, mailboxid=mailboxid).create().hold(seen=7, unseen=1).add(8, 1)


def await_right(corrected: Counted, journal: CassandraJournal) -> None:
    """Until fresh looks have shown that it is right: its finding ends, and nothing was added."""
    slot = Slot(corrected.mailboxid)
    tallies = FAMILY["mailbox_tally"]
    until(
        "the corrected counter is found to be right",
        lambda: slot not in journal.recall(tallies, "mailbox_counters", [slot]),
        SLOW,
    )
    assert corrected.counters() == (8, 1)
