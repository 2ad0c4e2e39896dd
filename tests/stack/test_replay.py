"""Replays beside the live stream: nothing is written where all is right, and nothing is missed.

What the stream has looked at too early, or with a rule that was wrong, is looked at again.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconcilers.words.exit_codes import ExitCode
from tests.stack.conftest import Scenes
from tests.stack.pasts import lose, newest_bookmark, settled
from tests.stack.scenes import Answer, Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

RUNBOOK = Path("deploy/runbook.md")
SETTINGS = "--config reconcile.toml"

SINCE = ("--from-time", "2026-01-01T00:00")


@pytest.fixture(scope="module")
def replayed(scenes: Scenes) -> Iterator[Scene]:
    """A stream that looks at nothing again by itself."""
    yield from scenes({"repair": {"recheck_interval": 600}})


@pytest.fixture(scope="module")
def mail(replayed: Scene) -> list[Place]:
    """Mail that was captured and is right, deleted and changed mail, too; bookmarked before."""
    scene = replayed
    until("something is settled", partial(newest_bookmark, scene))
    scene.succeed("bookmark", "before")
    places = [Place() for _ in range(12)]
    for place in places:
        scene.write_both(place, cells())
    for place in places[:3]:
        scene.delete_truth(place)
        scene.delete_projection(place)
    scene.await_all_examined()
    return places


def memory_of(scene: Scene, place: Place) -> list[Any]:
    """The deletes that are remembered of a message, and what was seen of it."""
    told: list[Any] = []
    told += scene.execute(
        "SELECT * FROM $own.truth_deletes WHERE messageid = %s AND mailboxid = %s",
        place.messageid,
        place.mailboxid,
    )
    query = "SELECT * FROM $own.lineage_by_message WHERE messageid = %s"
    seen = scene.execute(query, place.messageid)
    return told + [row._replace(recorded_at=None) for row in seen]


@pytest.mark.long(part="sweeps")
def test_a_replay_of_what_is_right_twice_writes_nothing_and_believes_nothing_twice(
    replayed: Scene, mail: list[Place]
) -> None:
    before = [replayed.write_times(place.row) for place in mail]
    remembered = [memory_of(replayed, place) for place in mail]
    assert remembered[0], "the deletes were heard"
    for _ in range(2):
        answer = replayed.succeed("replay", "--bookmark", "before")
        assert " 0 suspects found" in answer.stdout
        assert not re.search(r"^message: 0 events were read", answer.stdout, re.MULTILINE), (
            answer.stdout
        )
    assert [replayed.write_times(place.row) for place in mail] == before
    assert [memory_of(replayed, place) for place in mail] == remembered


def test_the_stream_runs_on_and_keeps_its_place(replayed: Scene, mail: list[Place]) -> None:
    before = settled(replayed)
    replayed.succeed("replay", *SINCE)
    after = settled(replayed)
    assert all(after.settled[place] >= offset for place, offset in before.settled.items())
    place = Place()
    replayed.write_truth(place, cells())
    replayed.await_verified(place.row)


@pytest.fixture(scope="module")
def broken(replayed: Scene, mail: list[Place]) -> Place:
    """A row that the stream has passed over."""
    lose(replayed, mail[5])
    replayed.stream.start_watching()
    return mail[5]


@pytest.mark.long(part="commands")
def test_a_dry_run_shows_what_differs_and_hands_nothing_over(
    replayed: Scene, mail: list[Place]
) -> None:
    place = mail[9]
    lose(replayed, place)
    replayed.stream.start_watching()
    answer = replayed.succeed("replay", "--bookmark", "before", "--dry-run")
    assert "messages: missing_row: 1 seen, none handed over" in answer.stdout
    replayed.await_all_examined()
    assert replayed.lacks(place.row)
    replayed.succeed("replay", "--bookmark", "before")
    until("it is repaired", lambda: replayed.agrees(place))


def test_what_differs_is_repaired_by_the_stream(replayed: Scene, broken: Place) -> None:
    topic = replayed.stack.topic_prefix
    places = [place for place in settled(replayed).settled if place[0] == topic]
    offsets = [f"--from-offset={topic}:{number}:0" for _, number in places]
    answer = replayed.succeed("replay", *offsets)
    assert "messages: missing_row: 1 seen: 1 " in answer.stdout  # held, while the stream is behind
    until("it is repaired", lambda: replayed.agrees(broken))


def test_bookmarks_are_listed_replaced_and_removed(replayed: Scene, mail: list[Place]) -> None:
    again = replayed.command("bookmark", "before")
    assert "bookmark before of " in again.stdout
    listed = replayed.command("bookmark", "--list")
    topic = replayed.stack.topic_prefix
    assert "before: settled at 20" in listed.stdout
    assert f"  {topic}:0:" in listed.stdout
    replayed.succeed("bookmark", "--delete", "before")
    assert "no bookmark has a name" in replayed.command("bookmark", "--list").stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["replay"], "is required"),
        (["replay", "--bookmark", "never"], "no bookmark is named never: there are none"),
        (["replay", "--from-offset", "topic"], "is not TOPIC:PARTITION:OFFSET"),
        (["replay", "--from-offset", "mail:0:1"], "mail:0 is none of"),
        (["replay", "--from-time", "yesterday"], "is no time as"),
        (["bookmark"], "is required"),
        (["bookmark", "--delete", "never"], "no bookmark is named never"),
    ],
)
def test_what_cannot_be_replayed_or_named_is_told_in_a_line(
    replayed: Scene, arguments: list[str], told: str
) -> None:
    replayed.command("bookmark", "--delete", "before")
    assert told in replayed.refuse(*arguments)


@pytest.mark.long(part="commands")
def test_where_no_stream_runs_the_command_settles_what_it_finds(
    replayed: Scene, mail: list[Place]
) -> None:
    place = mail[6]
    lose(replayed, place)
    answer = replayed.succeed("replay", *SINCE, "--mode", "repair", "--settle")
    assert "messages: missing_row: 1 seen: 1 repaired" in answer.stdout
    assert replayed.agrees(place)
    assert "run by" not in replayed.command("status").stdout, "its lease is given back"
    replayed.stream.start_watching()


@pytest.mark.long(part="commands")
def test_or_lets_it_wait_for_a_stream(replayed: Scene, mail: list[Place]) -> None:
    place = mail[7]
    lose(replayed, place)
    assert "no stream runs: say which" in replayed.refuse("replay", *SINCE)
    answer: Answer = replayed.command("replay", *SINCE, "--mode", "repair")
    assert answer.returncode == ExitCode.PROBLEMS, answer.stdout + answer.stderr
    assert " suspects wait in topic" in answer.stdout
    replayed.stream.start()
    until("it is repaired", lambda: replayed.agrees(place))


# --- the runbook's chapter, as it is typed


def commands_of_the_chapter(begins: str) -> list[list[str]]:
    """The words of each command that stands there, without ``reconcile`` and its settings file."""
    chapter = RUNBOOK.read_text(encoding="utf-8").partition(f"## {begins}")[2].partition("\n## ")[0]
    lines = [line for line in chapter.splitlines() if line.startswith("    reconcile ")]
    found = [shlex.split(line.replace(SETTINGS, ""), comments=True) for line in lines]
    return [words[1:] for words in found]


@pytest.mark.long(part="commands")
def test_the_incident_chapter_can_be_walked_through(replayed: Scene, mail: list[Place]) -> None:
    """What was wrong before the replay is right after it; its last two commands find nothing."""
    bookmark, dry_run, replay, *others = commands_of_the_chapter("Replay after an incident")
    replayed.succeed(*bookmark)
    place = mail[8]
    lose(replayed, place)
    replayed.stream.start_watching()
    told = replayed.command(*dry_run)
    assert "messages: missing_row: 1 seen, none handed over" in told.stdout, told.stderr
    assert not replayed.agrees(place)
    told = replayed.succeed(*replay)
    assert "messages: missing_row: 1 seen: 1 repaired" in told.stdout
    until("its repair holds", lambda: replayed.agrees(place))
    assert len(others) == 2
    for words in others:
        here = [re.sub(r"^james:(\d+):\d+$", _end_of(replayed), word) for word in words]
        told = replayed.succeed(*here)
        assert "repaired" not in told.stdout


def _end_of(scene: Scene) -> Callable[[re.Match[str]], str]:
    """Where a partition that the runbook names ends here."""
    topic, ends = scene.stack.topic_prefix, settled(scene).settled
    return lambda found: f"{topic}:{found[1]}:{ends[topic, int(found[1])]}"
