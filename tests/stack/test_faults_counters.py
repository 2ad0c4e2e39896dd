"""kill -9, and no answer, at each step of a correction: no delta is lost, and none is sent twice.

One mailbox whose counters are wrong, and one stream that dies at one step after the other. The
rounds that were claimed and the stored numbers tell, after each death, how far it came.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, CassandraRounds, Store
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from tests.conftest import make_mail_tables
from tests.endpoints import Running
from tests.stack.conftest import LATEST, TALLIES
from tests.stack.counted import Counted
from tests.stack.sabotage import sabotage
from tests.stack.scenes import Scene, begin_at_the_end
from tests.stack.streams import Stream, until, write_settings
from tests.stack.watched import SLOW

pytestmark = [pytest.mark.stack, pytest.mark.long(part="kills")]

CLAIM = "checkpoints.cassandra.tallies:CassandraRounds.claim"
ADD = "streaming.tables.counters:CounterTables.add"
RIGHT = (5, 2)


@dataclass
class Dying:
    """A stream over its lives, and the one mailbox that it counts."""

    scene: Scene
    box: Counted
    rounds: CassandraRounds
    journal: CassandraJournal
    folder: Path
    lives: int = 0

    def life(self, point: str, deed: str = "die") -> Path:
        """Start it, to be struck at this point; the file that tells when it was."""
        self.lives += 1
        struck = self.folder / f"struck-{self.lives}"
        stream = self.scene.stream
        stream.environment = sabotage(point, struck) | {"SABOTAGE_DEED": deed}
        stream.start()
        return struck

    def dies(self, point: str) -> None:
        struck = self.life(point)
        stream = self.scene.stream
        until(f"it dies {point}", lambda: stream.died() is not None, SLOW)
        stream.kill()
        assert struck.exists(), f"it died by itself:\n{stream.log.read_text()[-2000:]}"

    def gets_no_answer(self, point: str) -> None:
        """And goes on, until the counters are right and nothing is open."""
        struck = self.life(point, "time out")
        until(f"no answer {point}", struck.exists, SLOW)
        until("the counters are right", lambda: self.box.counters() == RIGHT, SLOW)
        until("nothing is open", lambda: not self.open_findings(), SLOW)
        assert self.scene.stream.stop() == 0

    def breaks(self) -> None:
        """One message too many, in both counters."""
        self.box.add(1, 1)
        self.box.touch()

    def is_at(self, counters: tuple[int, int], claimed: int) -> None:
        key = str(self.box.mailboxid)
        assert (self.box.counters(), self.rounds.current("mailbox_counters", key)) == (
            counters,
            claimed,
        )

    def open_findings(self) -> list[object]:
        return list(self.journal.open_findings(MAILBOX_TALLY))


@pytest.fixture
def dying(running: Running, cassandra: Session, tmp_path: Path) -> Iterator[Dying]:
    stack, name = running.endpoints, uuid.uuid4().hex[:8]
    keyspace, own = f"dying_{name}", f"dying_{name}_own"
    make_mail_tables(running, cassandra, keyspace)
    tally = {**TALLIES, "projections": ["mailbox_counters"]}
    changes = {"stream": {"delay": LATEST}, "tally": tally}
    config = write_settings(tmp_path / "reconcile.toml", stack, keyspace, own, changes)
    begin_at_the_end(cassandra, config)
    with Stream(config) as stream:
        stream.wait_until_watching()
        assert stream.stop() == 0
        scene = Scene(cassandra, stack, keyspace, own, stream)
        box = Counted(scene).create().hold(3, 2).add(*RIGHT)
        store = Store(cassandra, own)
        journal = CassandraJournal(store, scope=keyspace)
        yield Dying(scene, box, CassandraRounds(store), journal, tmp_path)
    for each in (keyspace, own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


def test_whenever_it_dies_a_correction_is_sent_once(dying: Dying) -> None:
    wrong = (6, 3)
    dying.breaks()
    dying.dies(f"before {CLAIM}")
    dying.is_at(wrong, claimed=0)
    dying.dies(f"after {CLAIM}")
    dying.is_at(wrong, claimed=1)
    dying.dies(f"before {ADD}")
    dying.is_at(wrong, claimed=2)
    dying.dies(f"after {ADD}")
    dying.is_at(RIGHT, claimed=3)
    dying.breaks()
    dying.gets_no_answer(f"after {ADD}")  # it was applied: looked at again, and found right
    dying.is_at(RIGHT, claimed=4)
    dying.breaks()
    dying.gets_no_answer(f"before {ADD}")  # it was not: looked at again, and found wrong
    dying.is_at(RIGHT, claimed=6)
