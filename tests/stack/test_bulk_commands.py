"""A copy of 20,000 mails and an expunge of as many at the same time, on real servers.

James writes a counter once, at the end of such a command, and quotas by a listener that is minutes
behind. Until then both look wrong by 20,000.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import PreparedStatement

from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import SIZE, Counted
from tests.stack.scenes import Place, Scene, cells, insertion
from tests.stack.streams import PATIENCE

pytestmark = [pytest.mark.stack, pytest.mark.long(part="loads")]

MANY, TOGETHER = 20_000, 100
PER_SECOND = 200.0
"""So many messages a second: each command takes a hundred seconds, or longer on a busy machine."""
LAG = 900.0
"""Seconds: longer than both take, which end when an error elsewhere has been corrected."""
LISTENER_S = 300.0
"""So far the listener of quotas is behind."""
LONG = LAG + PATIENCE
TOO_FEW, TOO_MANY = -3, 2
"""What the two counters were wrong by before."""
FAR: dict[str, Any] = {
    "max_update_lag": LAG,
    "max_quota_lag": LAG,
    "correction_max_messages": 10 * MANY,
    "correction_max_octets": 10 * MANY * SIZE,
}


@pytest.fixture(scope="module")
def slow_scene(scenes: Scenes) -> Iterator[Scene]:
    """A stream that knows that counters come minutes late, and would correct whatever is wrong."""
    yield from scenes({"stream": {"delay": LATEST}, "tally": {**TALLIES, **FAR}})


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statements:
    """What a command sends of each message to both tables, the truth first."""

    session: Session
    prepared: tuple[PreparedStatement, PreparedStatement]
    rows: Callable[[UUID, int], tuple[Row, Row]]

    def send(self, messages: Sequence[UUID], per_second: float, begin: int = 0) -> None:
        """From this one on; the first has UID 1."""
        begun = time.monotonic()
        for first in range(begin, len(messages), TOGETHER):
            some = enumerate(messages[first : first + TOGETHER], first + 1)
            of_each = [self.rows(message, uid) for uid, message in some]
            for statement, rows in zip(self.prepared, zip(*of_each, strict=True), strict=True):
                execute_concurrent_with_args(self.session, statement, rows)
            due = begun + (first - begin) / per_second
            time.sleep(max(0.0, due - time.monotonic()))  # its pace, no wait


def copies(scene: Scene, mailboxid: UUID) -> Statements:
    values = {name: value for name, value in cells().items() if name != "userflags"}

    def insert(table: str) -> PreparedStatement:
        return scene.prepare(insertion(table, ("messageid", "mailboxid", "uid", *values)))

    def rows(message: UUID, uid: int) -> tuple[Row, Row]:
        row = (message, mailboxid, uid, *values.values())
        return row, row

    return Statements(scene.session, (insert("$truth"), insert("$projection")), rows)


def expunges(scene: Scene, mailboxid: UUID) -> Statements:
    """Those of the truth name no UID."""

    def delete(table: str, other: str) -> PreparedStatement:
        return scene.prepare(f"DELETE FROM {table} WHERE mailboxid = ? AND {other} = ?")

    def rows(message: UUID, uid: int) -> tuple[Row, Row]:
        return (mailboxid, message), (mailboxid, uid)

    prepared = (delete("$truth", "messageid"), delete("$projection", "uid"))
    return Statements(scene.session, prepared, rows)


@dataclass(frozen=True)
class Command:
    """On all messages of a mailbox but one; ``sign`` is what each adds to its counters."""

    box: Counted
    statements: Statements
    messages: Sequence[UUID]
    sign: int

    def run(self) -> None:
        """All but the last messages."""
        self.statements.send(self.messages[:-TOGETHER], PER_SECOND)

    def finish(self) -> None:
        """The last ones, and then its counter."""
        self.statements.send(self.messages, PER_SECOND, MANY - TOGETHER)
        self.box.add(self.sign * MANY, self.sign * MANY)

    def count_quota(self) -> None:
        """The listener has come to its event."""
        self.box.add_quota(self.sign * MANY, self.sign * MANY * SIZE)


@dataclass
class Played:
    """Both commands; when they had ended (s, a steady clock), and what was corrected by then."""

    scene: Scene
    copy: Command
    expunge: Command
    bystander: Counted
    ended: float = 0.0
    by_then: list[dict[str, Any]] = field(default_factory=list)

    def corrections(self) -> list[dict[str, Any]]:
        """Of the counters and quotas of both mailboxes, so far."""
        ours = (self.copy.box, self.expunge.box)
        told = [each for box in ours for each in (*box.findings(), *box.quota_findings())]
        return [each for each in told if each["state"] == "intended"]

    def play(self) -> None:
        """Both at once, for as long as it takes to correct a counter that is wrong elsewhere."""
        workers = [threading.Thread(target=each.run) for each in (self.copy, self.expunge)]
        begun = time.monotonic()
        for worker in workers:
            worker.start()
        self.scene.await_all_examined()
        self.bystander.add(1, 0).touch()
        self.bystander.await_counters((3, 1), LONG)
        for worker in workers:
            worker.join()
        for each in (self.copy, self.expunge):
            each.finish()
        self.ended = time.monotonic()
        assert self.ended - begun < LAG, "this machine takes longer than the stream was told"
        self.by_then = self.corrections()


@pytest.fixture(scope="module")
def played(slow_scene: Scene) -> Played:
    """Two mailboxes of two users, whose counters were wrong before, though by little."""
    scene, messages = slow_scene, [uuid.uuid1() for _ in range(MANY)]
    into, out_of, bystander = (Counted(scene).create() for _ in range(3))
    copies(scene, out_of.mailboxid).send(messages, float("inf"))
    for box in (into, out_of):
        box.places.append(Place(mailboxid=box.mailboxid, uid=MANY + 1))
        scene.write_both(box.places[0], cells())
    into.add(1 + TOO_MANY, 1 + TOO_MANY).add_quota(1, SIZE)
    out_of.add(MANY + 1 + TOO_FEW, MANY + 1 + TOO_FEW).add_quota(MANY + 1, (MANY + 1) * SIZE)
    bystander.hold(seen=2, unseen=1)
    made = Played(
        scene,
        Command(into, copies(scene, into.mailboxid), [uuid.uuid1() for _ in messages], 1),
        Command(out_of, expunges(scene, out_of.mailboxid), messages, -1),
        bystander,
    )
    made.play()
    return made


def test_nothing_is_corrected_before_james_writes_his_counters(played: Played) -> None:
    assert played.by_then == []


def test_no_quota_is_corrected_while_its_listener_is_minutes_behind(played: Played) -> None:
    while time.monotonic() < played.ended + LISTENER_S:  # so far it is behind: no wait
        played.scene.await_all_examined()
    for command in (played.copy, played.expunge):
        assert not command.box.quota_findings()
        command.count_quota()


def test_afterwards_everything_is_exact(played: Played) -> None:
    into, out_of = played.copy.box, played.expunge.box
    for box, messages in ((into, MANY + 1), (out_of, 1)):
        box.await_counters((messages, messages), LONG)  # none of them is seen
        box.await_verified()
        assert box.quota() == (messages, messages * SIZE)
    assert [each["projection"] for each in played.corrections()] == ["mailbox_counters"] * 2
