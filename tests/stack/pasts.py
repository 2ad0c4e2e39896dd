"""Keyspaces with a past: mail that was written, and went wrong, before anybody captured it."""

import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from checkpoints.bookmarks import Bookmark, flat
from checkpoints.cassandra import CassandraBookmarks, Store
from deploy.demo.old_mail import end_segment
from deploy.mailserver.james import create_schema, enable_cdc
from deploy.mailserver.ledger import Ledger
from deploy.mailserver.workload import Workload, run
from reconcilers.declared.families import family_named
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, load
from streaming.topics import Watcher
from tests.conftest import LONG_S
from tests.endpoints import Endpoints, Running
from tests.stack.scenes import (
    Place,
    RowKey,
    Scene,
    begin_at_the_end,
    cells,
    events_of,
    reconcile,
)
from tests.stack.streams import Stream, until, write_settings
from tests.stack.users import TRUTH

QUIET = {"flagseen": True, "userflags": set[str]()}
"""Flags of a message that no index knows."""
FOR_EVER = 1_000_000
"""Operations of users who go on until they are stopped."""


def a_scene_with_a_past(
    running: Running,
    session: Session,
    folder: Path,
    changes: Mapping[str, Mapping[str, Any]],
    write: Callable[[Scene], None],
) -> Iterator[Scene]:
    """A stream over what ``write`` has left in a keyspace that nobody captured: no event tells.

    Memory begins after it. The stack's own keyspace has to be captured (`mail_keyspace`): a row
    there tells how far the agent has come.
    """
    stack, name = running.endpoints, uuid.uuid4().hex[:8]
    stream = Stream(folder / "reconcile.toml")
    scene = Scene(session, stack, f"past_{name}", f"past_{name}_own", stream)
    create_schema(session, scene.keyspace)
    write_settings(stream.config, stack, scene.keyspace, scene.own, changes)
    write(scene)
    end_segment(session)  # the agent would send what stands in an open one
    await_agent(session, stack)
    enable_cdc(session, scene.keyspace)
    running.show_new_tables()
    begin_at_the_end(session, stream.config)
    with stream:
        stream.wait_until_watching()
        yield scene
        assert stream.stop() == 0
    for each in (scene.keyspace, scene.own):
        session.execute(f"DROP KEYSPACE IF EXISTS {each}")


def await_agent(session: Session, stack: Endpoints) -> None:
    """Until the agent has passed all that was written up to now, in every keyspace."""
    marker = uuid.uuid1()

    def passed() -> bool:
        session.execute(
            f"INSERT INTO {stack.keyspace}.{TRUTH} (messageid, mailboxid, uid) VALUES (%s, %s, 1)",
            (uuid.uuid1(), marker),
        )
        found = events_of(stack, stack.keyspace, TRUTH)
        return any(str(marker).encode() in each.value for each in found)

    until("the agent has read a row of now", passed)


def places(number: int) -> list[Place]:
    """So many messages, each in a mailbox of its own."""
    return [Place() for _ in range(number)]


@dataclass
class Damage:
    """What went wrong on one occasion, some of each kind.

    ``partial`` are rows of the listing that name no message, of messages that are nowhere;
    ``unknown`` rows of an index of UIDs that no other table has.
    """

    missing: list[Place]
    stale: list[Place]
    partial: list[Place]
    unknown: list[Place]

    @classmethod
    def of(cls, number: int) -> "Damage":
        """So many of each kind; nothing is written."""
        return cls(*(places(number) for _ in range(4)))

    @property
    def places(self) -> list[Place]:
        """All of them."""
        return [*self.missing, *self.stale, *self.partial, *self.unknown]

    def plant(self, scene: Scene) -> None:
        """Write it, as it was left."""
        for place in self.missing:
            scene.write_truth(place, cells(**QUIET))
        for place in self.stale:
            scene.write_both(place, cells(**QUIET))
            scene.write_projection(place, {"flagflagged": True})
        for place in self.partial:
            scene.write_projection(place, {"flagseen": True, "modseq": 9})
        for place in self.unknown:
            mark_deleted(scene, place)

    def left(self, scene: Scene) -> dict[str, list[Place]]:
        """What is still wrong, by its kind."""
        found = {
            "missing": [each for each in self.missing if not scene.agrees(each)],
            "stale": [each for each in self.stale if not scene.agrees(each)],
            "partial": [each for each in self.partial if not scene.lacks(each.row)],
            "unknown": [each for each in self.unknown if is_marked(scene, each)],
        }
        return {kind: wrong for kind, wrong in found.items() if wrong}

    def await_repaired(self, scene: Scene) -> None:
        """Until nothing of it is wrong."""
        for kind in ("missing", "stale", "partial", "unknown"):
            until(f"{kind} is repaired", partial(self._is_right, scene, kind))

    def _is_right(self, scene: Scene, kind: str) -> bool:
        return kind not in self.left(scene)


def mark_deleted(scene: Scene, place: Place) -> None:
    """A row in the index of deleted UIDs."""
    scene.execute("INSERT INTO $mail.messagedeleted (mailboxid, uid) VALUES (%s, %s)", *place.row)


def is_marked(scene: Scene, place: Place) -> bool:
    """Whether the index of deleted UIDs has a row of it."""
    query = "SELECT uid FROM $mail.messagedeleted WHERE mailboxid = %s AND uid = %s"
    return scene.execute(query, *place.row).one() is not None


def capture(scene: Scene, on: str) -> None:
    """Turn it on ("true") or off ("false") for the tables of messages and of deleted UIDs."""
    for table in ("imapuidtable", "messageidtable", "messagedeleted"):
        scene.execute(f"ALTER TABLE $mail.{table} WITH cdc = {on}")


@contextmanager
def uncaptured(scene: Scene) -> Iterator[None]:
    """Nobody hears of what is written meanwhile; then the stream's memory begins anew."""
    capture(scene, "false")
    until("memory has ended", lambda: scene.stream.said("changes may have been missed"))
    yield
    end_segment(scene.session)  # the agent would send what stands in an open one
    capture(scene, "true")
    until("memory has begun anew", lambda: scene.stream.said("lineage has begun:"))


def begin_sweep(scene: Scene, *words: str) -> subprocess.Popen[str]:
    """A sweep in a process group of its own, that says what it does through pipes."""
    command = [sys.executable, "-m", "streaming.app", "sweep", *words]
    return subprocess.Popen(
        [*command, "--config", str(scene.stream.config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def swept(scene: Scene, *words: str) -> subprocess.CompletedProcess[str]:
    """A sweep over so many rows that it may take as long as its test, and went well."""
    config = ("--config", str(scene.stream.config))
    answer = reconcile("sweep", *words, *config, patience=LONG_S)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer


def unresolved(scene: Scene) -> list[str]:
    """The open findings that nobody can resolve, a line for each."""
    told = scene.succeed("findings", "--kind", "unresolved", "--format", "jsonl")
    return told.stdout.splitlines()


def repaired(scene: Scene) -> set[RowKey]:
    """The rows that the stream has written, or meant to."""
    return {
        (uuid.UUID(str(each["mailboxid"])), int(each["uid"]))
        for each in scene.stream.findings()
        if each["state"] in ("intended", "verified")
    }


@dataclass
class Users:
    """Users at work in a keyspace, whose mail server makes no mistake.

    ``ledger`` knows what it has meant, and which statement Cassandra has not answered.
    """

    scene: Scene
    rate: float
    ledger: Ledger = field(default_factory=Ledger)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Until the block ends; raises what failed."""
        stop, workload = threading.Event(), Workload(FOR_EVER, self.rate, workers=2)
        session, keyspace = self.scene.session, self.scene.keyspace
        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(run, session, keyspace, workload, self.ledger, stop)
            try:
                yield
            finally:
                stop.set()
            working.result()

    @property
    def done(self) -> int:
        """How many statements were sent so far."""
        return self.ledger.progress()[0]

    def in_doubt(self) -> set[RowKey]:
        """Rows that the mail server itself has left wrong: a statement was not answered."""
        rows = [row for _, row in self.ledger.differing({})]
        return {(mailboxid, uid) for mailboxid, uid in rows if isinstance(uid, int)}


def newest_bookmark(
    scene: Scene, family: str = "message", mode: Mode = Mode.REPAIR
) -> Bookmark | None:
    """What the stream of a scene has recorded last of a family."""
    names = StreamNames.of(load(scene.stream.config, {}), mode)
    stream = names.bookmarks(family_named(family))
    return CassandraBookmarks(Store(scene.session, scene.own)).newest(stream)


def pass_over(scene: Scene, family: str = "message") -> None:
    """Record for a family's stream, which is off, that it has settled all that Kafka holds now."""
    newest = settled(scene, family)
    with closing(Watcher(load(scene.stream.config, {}).kafka)) as watcher:
        ends = flat(watcher.end_offsets({topic for topic, _ in newest.settled}))
    bookmarks = CassandraBookmarks(Store(scene.session, scene.own))
    bookmarks.record(replace(newest, settled=ends, heard={}))


def lose(scene: Scene, place: Place) -> None:
    """A projection row is lost, and the stream has passed over the event that tells of it.

    As after a rule or a setting that was wrong. The stream is stopped when this returns.
    """
    scene.stream.stop()
    heard = len(scene.events([place.mailboxid]))
    scene.delete_projection(place)
    until("Kafka has the event", lambda: len(scene.events([place.mailboxid])) > heard)
    pass_over(scene)


def settled(scene: Scene, family: str = "message") -> Bookmark:
    """Up to where the stream of a scene has settled everything of a family."""
    newest = newest_bookmark(scene, family)
    assert newest is not None
    return newest
