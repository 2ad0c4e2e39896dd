"""Replays of live data: users write on, the stream runs on, and what is right is written by nobody.

And of an incident: the stream was off, and was then begun after all that had happened meanwhile.
"""

import ctypes
import os
import struct
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from deploy.comparison.differences import message_differences
from deploy.comparison.snapshot import read_whole
from tests.stack.conftest import Scenes
from tests.stack.pasts import (
    QUIET,
    Users,
    is_marked,
    mark_deleted,
    pass_over,
    places,
    repaired,
    settled,
)
from tests.stack.poison import ABSURD, event
from tests.stack.scenes import Answer, Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

RATE, STATEMENTS, EVENTS = 15.0, 1_500, 750
"""Operations a second of the users, and their statements; not each of these has an event."""
DELAY = 10
"""No write of theirs is on its way for longer, on a busy machine too."""


@pytest.fixture(scope="module")
def live(scenes: Scenes) -> Iterator[Scene]:
    """A stream that looks at nothing again by itself."""
    repair = {"recheck_interval": 600, "projections": ["messages", "deleted_uids"]}
    yield from scenes({"stream": {"delay": DELAY}, "repair": repair})


def hour_ago() -> str:
    return (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")


def replayed(scene: Scene, *words: str) -> Answer:
    """A replay of the past hour, if no other is asked for, that went well."""
    return scene.succeed("replay", *(words or ("--from-time", hour_ago())))


# --- live data


def test_the_past_hour_twice_while_users_write_changes_nothing(live: Scene) -> None:
    users, right, poison = Users(live, RATE), places(10), uuid.uuid4()
    for place in right:
        live.write_both(place, cells(**QUIET))
    live.publish([event(live, Place(messageid=poison), now_us() // 1000)])
    live.publish([event(live, right[0], ABSURD)])
    with users.at_work():
        until("they have done enough", lambda: users.done > STATEMENTS)
        live.await_remembered(right)
        until("it is a dead letter", lambda: letters(live, poison) == 1)
        proofs = live.await_all_examined()
        before = [live.write_times(place.row) for place in right]
        batches = live.stream.batches()
        for _ in range(2):
            told = replayed(live).stdout
            assert events_read(told) > EVENTS
            assert "wrong type: an id is not a time-based UUID" in told
        proofs += live.await_all_examined()
    assert live.stream.batches() > batches
    assert live.metric("reconciler_query_restarts_total") == 0
    assert letters(live, poison) == 1
    assert [live.write_times(place.row) for place in right] == before
    assert repaired(live) - {place.row for place in proofs} - users.in_doubt() == set()
    live.await_all_examined()
    tables = read_whole(live.session, live.keyspace)
    assert list(message_differences(tables)) == []


def events_read(told: str) -> int:
    """How many events a replay says to have read."""
    (line,) = [each for each in told.splitlines() if " events were read" in each]
    return int(line.removeprefix("message: ").partition(" ")[0])


def letters(scene: Scene, message: uuid.UUID) -> int:
    """How many dead letters tell of it."""
    return sum(str(message) in str(each) for each in scene.dead_letters())


# --- nothing of the stream's progress is opened for writing


IN_CLOSE_WRITE, IN_MOVED, IN_CREATE, IN_DELETE = 0x8, 0xC0, 0x100, 0x200
HEADER = struct.Struct("iIII")


class Opened:
    """What is opened for writing, made, moved or deleted below a folder, by whomever (Linux)."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._watch = self._libc.inotify_init1(os.O_NONBLOCK)
        self._folders: dict[int, Path] = {}
        for each in (folder, *(sub for sub in folder.rglob("*") if sub.is_dir())):
            wanted = IN_CLOSE_WRITE | IN_MOVED | IN_CREATE | IN_DELETE
            number = self._libc.inotify_add_watch(self._watch, os.fsencode(each), wanted)
            assert number >= 0, os.strerror(ctypes.get_errno())
            self._folders[number] = each

    def close(self) -> None:
        """Watch no more."""
        os.close(self._watch)

    def seen(self) -> list[Path]:
        """What has been so since the last question."""
        try:
            told = os.read(self._watch, 1 << 20)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(told):
            number, _mask, _cookie, length = HEADER.unpack_from(told, at)
            name = told[at + HEADER.size : at + HEADER.size + length].rstrip(b"\0")
            found.append(self._folders[number] / os.fsdecode(name))
            at += HEADER.size + length
        return found


@contextmanager
def stopped(scene: Scene) -> Iterator[None]:
    """The stream is off meanwhile."""
    assert scene.stream.stop() == 0
    yield
    scene.stream.start_watching()


def test_a_replay_opens_nothing_of_the_streams_progress_for_writing(live: Scene) -> None:
    """While the stream is off, so that whoever opens a file there is the replay."""
    folder = live.stream.checkpoint
    with closing(Opened(folder)) as opened, stopped(live):
        opened.seen()
        before = settled(live)
        told = replayed(live, "--from-time", hour_ago(), "--mode", "repair").stdout
        assert events_read(told) > EVENTS
        assert opened.seen() == []
        assert settled(live) == before
        (folder / "noticed").touch()
        assert opened.seen(), "nothing would be noticed"
        (folder / "noticed").unlink()


# --- an incident


@pytest.fixture(scope="module")
def incident(live: Scene) -> dict[str, list[Place]]:
    """Rows that went wrong while the stream was off; it begins after all of their events.

    As if somebody had accepted that these were lost.
    """
    wrong = {kind: places(4) for kind in ("missing", "stale", "expunged", "unmarked", "marked")}
    for kind, rows in wrong.items():
        for place in rows:
            live.write_both(place, cells(**QUIET, flagdeleted=kind == "unmarked"))
            if kind == "unmarked":
                mark_deleted(live, place)
    live.await_remembered(place for rows in wrong.values() for place in rows)
    live.await_all_examined()
    live.succeed("bookmark", "before")
    with stopped(live):
        damage(live, wrong)
        until("Kafka has their events", partial(has_events, live, wrong))
        pass_over(live)
    return wrong


def damage(scene: Scene, wrong: dict[str, list[Place]]) -> None:
    """Each in its way. Of what was expunged the listing's delete is lost."""
    for place in wrong["missing"]:
        scene.delete_projection(place)
    for place in wrong["stale"]:
        scene.write_projection(place, {"flagflagged": True})
    for place in wrong["expunged"]:
        scene.delete_truth(place)
    for place in wrong["unmarked"]:
        unmark = "DELETE FROM $mail.messagedeleted WHERE mailboxid = %s AND uid = %s"
        scene.execute(unmark, *place.row)
    for place in wrong["marked"]:
        mark_deleted(scene, place)


def has_events(scene: Scene, wrong: dict[str, list[Place]]) -> bool:
    """Whether the agent has come to a row that is written now."""
    marker = Place()
    scene.write_both(marker, cells(**QUIET))
    until("its events are there", lambda: len(scene.events([marker.mailboxid])) > 1)
    return all(
        len(scene.events([place.mailboxid])) > 2
        for kind in ("missing", "stale", "expunged")
        for place in wrong[kind]
    )


def still_wrong(scene: Scene, wrong: dict[str, list[Place]]) -> set[str]:
    """The kinds of which something is not right."""
    right: dict[str, Callable[[Place], bool]] = {
        "missing": scene.agrees,
        "stale": scene.agrees,
        "expunged": lambda place: scene.lacks(place.row),
        "unmarked": partial(is_marked, scene),
        "marked": lambda place: not is_marked(scene, place),
    }
    return {kind for kind, rows in wrong.items() if not all(map(right[kind], rows))}


def test_a_replay_from_before_the_incident_repairs_everything(
    live: Scene, incident: dict[str, list[Place]]
) -> None:
    live.await_all_examined()
    assert still_wrong(live, incident) == set(incident)
    bookmark = live.command("bookmark", "--list").stdout.splitlines()
    offsets = [each.strip() for each in bookmark if each.strip().startswith(topic_of(live))]
    told = replayed(live, *(f"--from-offset={each}" for each in offsets)).stdout
    assert "messages: missing_row: 4 seen: " in told
    until("everything is repaired", lambda: not still_wrong(live, incident))


def test_the_same_replay_once_more_finds_all_of_it_right(
    live: Scene, incident: dict[str, list[Place]]
) -> None:
    live.await_all_examined()
    before = {
        place: live.write_times(place.row)
        for kind in ("missing", "stale", "marked")
        for place in incident[kind]
    }
    assert "missing_row" not in replayed(live, "--bookmark", "before").stdout
    assert {place: live.write_times(place.row) for place in before} == before
    assert still_wrong(live, incident) == set()


def topic_of(scene: Scene) -> str:
    return f"{scene.stack.topic_prefix}:"
