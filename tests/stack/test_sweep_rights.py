"""Sweeps and replays of access rights, beside the stream that keeps them.

All differences are made before change capture begins, or passed over by the stream: no event of
them is looked at.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from checkpoints.cassandra import CassandraSweeps, Store
from tests.stack.conftest import Changes, Scenes
from tests.stack.pasts import begin_sweep, pass_over, settled
from tests.stack.scenes import Answer, Scene, events_of
from tests.stack.shared_mailbox import SharedMailbox
from tests.stack.streams import until

pytestmark = pytest.mark.stack

ANA, BOB, EVE = "ana@example.com", "bob", "eve"
RANGES, MANY = 16, 24
RATE = 2
"""Rows a second: the tables take most of a minute."""
TABLES = "eventstore and 1 more"


@dataclass
class Past:
    """Mailboxes of before, by what is wrong; ``right`` are many in which nothing is."""

    scene: Scene
    missing: SharedMailbox = field(init=False)
    differing: SharedMailbox = field(init=False)
    lost: SharedMailbox = field(init=False)
    never: SharedMailbox = field(init=False)
    deleted: SharedMailbox = field(init=False)
    none: SharedMailbox = field(init=False)
    right: list[SharedMailbox] = field(init=False)

    def write(self) -> Past:
        """All of it, unheard."""
        scene = self.scene
        for name in ("missing", "differing", "lost", "never", "deleted", "none"):
            setattr(self, name, SharedMailbox(scene))
        self.right = [SharedMailbox(scene) for _ in range(MANY)]
        self.missing.grant({ANA: "lr"})
        self.differing.grant({ANA: "wlr"})
        self.differing.show(ANA, "l")
        self.lost.grant({ANA: "lr", BOB: "lr"})
        self.lost.grant({ANA: "lr"})
        for each in (self.lost, self.never):
            each.show(ANA, "lr")
            each.show(BOB, "lr")
        self.never.grant({ANA: "lr"})
        self.deleted.show(EVE, "lr")
        self.none.exist()
        self.none.show(EVE, "lr")
        for number, each in enumerate(self.right):
            each.grant({f"user {number}": "lr", "$staff": "l"})
            each.show(f"user {number}", "lr")
        scene.execute(
            "INSERT INTO $mail.eventstore (aggregateid, eventid, event) VALUES (%s, 0, %s)",
            "DLPDomainConfiguration/example.com",
            "{",
        )
        return self

    def await_repaired(self) -> None:
        """Until every row is as its list says."""
        self.missing.await_shown(ANA, "lr")
        self.differing.await_shown(ANA, "lrw")
        for each, user in ((self.lost, BOB), (self.never, BOB), (self.deleted, EVE)):
            each.await_shown(user, None)

    def right_times(self) -> list[Any]:
        """When the rows were written in which nothing is wrong."""
        query = "SELECT username, writetime(rights) FROM $mail.usermailboxacl"
        rows = [*self.scene.execute(query)]
        return sorted(each for each in rows if each[0].startswith("user "))


@dataclass(frozen=True)
class Swept:
    """The answer of the sweep, and what was there before it."""

    answer: Answer
    times: list[Any]


CHANGES: Changes = {
    "rights": {"truth": "eventstore"},
    "repair": {"recheck_interval": 600},
    "sweep": {"ranges": RANGES},
}


@pytest.fixture(scope="module")
def past(scenes: Scenes, mail_keyspace: str) -> Iterator[Past]:
    """A stream that does not sweep by itself."""
    yield from scenes.over(lambda scene: Past(scene).write(), CHANGES)


@pytest.fixture(scope="module")
def swept(past: Past) -> Swept:
    times = past.right_times()
    answer = past.scene.succeed("sweep", "--systems", "user_rights", "--reason", "the first")
    return Swept(answer, times)


def test_what_went_wrong_before_capture_began_is_repaired(past: Past, swept: Swept) -> None:
    past.await_repaired()
    assert past.lost.shown(ANA) == past.never.shown(ANA) == "lr"
    until("it is verified", lambda: _verified(past.missing, ANA))


def test_what_was_read_and_found_is_told(past: Past, swept: Swept) -> None:
    told = swept.answer.stdout
    lists, rows = 4 + MANY, 7 + MANY
    assert f"rights: {lists + rows} rows were compared, 8 suspects found" in told, told
    assert "message: " not in told
    assert "every row was compared" in told


def test_rows_of_a_mailbox_without_a_list_are_reported_and_stay(past: Past, swept: Swept) -> None:
    told = partial(past.none.told, EVE, kind="absent_without_delete", state="reported")
    until("it is reported", told)
    assert past.none.shown(EVE) == "lr"


def test_what_is_right_is_left_alone(past: Past, swept: Swept) -> None:
    past.await_repaired()
    assert past.right_times() == swept.times
    assert len(swept.times) == MANY


def test_a_sweep_of_everything_compares_one_family_after_another(past: Past, swept: Swept) -> None:
    past.await_repaired()
    told = past.scene.succeed("sweep").stdout
    messages, rights = told.index("message: "), told.index("rights: ")
    assert messages < told.index("lineage is complete") < rights < told.index("every row was")


@pytest.mark.long(part="sweeps")
def test_one_that_is_killed_goes_on_and_reads_no_range_again(past: Past, swept: Swept) -> None:
    past.await_repaired()
    sweeps = CassandraSweeps(Store(past.scene.session, past.scene.own), past.scene.keyspace)

    def done() -> int:
        (newest, *_) = sweeps.all()
        return sum(each.ranges for each in sweeps.ranges(newest).values())

    words = ("--systems", "user_rights", "--rate", str(RATE))
    process = begin_sweep(past.scene, *words)
    until("some rows were read", lambda: done() > 0)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = done()
    assert before < 2 * RANGES, "it was killed in the middle"
    answer = past.scene.succeed("sweep", "--resume", "--systems", "user_rights")
    assert f"{TABLES}: {before} of {2 * RANGES} ranges" in answer.stderr
    rows = past.scene.execute("SELECT count(*) FROM $mail.usermailboxacl").one()[0]
    assert f"rights: {4 + MANY + rows} rows were compared, 1 suspects found" in answer.stdout


@pytest.mark.long(part="sweeps")
def test_a_replay_finds_a_right_that_the_stream_has_passed_over(past: Past, swept: Swept) -> None:
    past.await_repaired()
    scene, mailbox = past.scene, SharedMailbox(past.scene)
    mailbox.grant({ANA: "lr"})
    until("it is verified, and not looked at again", lambda: _verified(mailbox, ANA))
    scene.stream.stop()
    heard = events_of_rows(scene)
    mailbox.hide(ANA)
    until("Kafka has the event", lambda: events_of_rows(scene) > heard)
    pass_over(scene, "rights")
    scene.stream.start_watching()
    topic = scene.stack.topic_prefix
    places = [each for each in settled(scene).settled if each[0] == topic]
    offsets = [f"--from-offset={topic}:{number}:0" for _, number in places]
    told = scene.succeed("replay", *offsets, "--dry-run").stdout
    assert "user_rights: missing_row: 1 seen, none handed over" in told
    assert mailbox.shown(ANA) is None
    told = scene.succeed("replay", *offsets).stdout
    assert "user_rights: missing_row: 1 seen: 1 " in told  # held, while the stream is behind
    mailbox.await_shown(ANA, "lr")


def events_of_rows(scene: Scene) -> int:
    """How many events of users' rows Kafka has."""
    return len(events_of(scene.stack, scene.keyspace, "usermailboxacl"))


@pytest.fixture(scope="module")
def sweeping(scenes: Scenes, mail_keyspace: str) -> Iterator[Past]:
    """A stream that sweeps by itself, as by default."""
    sweep = {"ranges": RANGES, "when_needed": True}
    yield from scenes.over(lambda scene: Past(scene).write(), {**CHANGES, "sweep": sweep})


@pytest.mark.long(part="sweeps")
def test_the_stream_sweeps_rights_by_itself(sweeping: Past) -> None:
    sweeping.await_repaired()
    scene = sweeping.scene
    until("it has ended", lambda: "rights: last swept " in scene.succeed("status").stdout)
    told = scene.succeed("status").stdout
    assert "message: last swept " in told
    until("none is due", lambda: scene.metric("reconciler_sweep_due") == 0)


def _verified(mailbox: SharedMailbox, user: str) -> bool:
    return any(str(each["message"]).startswith("verified: ") for each in mailbox.told(user))
