"""One event may wake a whole mailbox, however large: its memory has a bound, others do not wait."""

import uuid
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from tests.processes import CpuWatch
from tests.stack.scenes import Place, Scene, cells, insertion
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="loads")]

SMALL, LARGE = 20_000, 200_000
TOGETHER = 500
UNSEEN = 5
"""So many of a mailbox's messages are unseen: the index lists them alone."""
MIB_MORE = 60.0
"""A worker that held 180,000 rows more would need several times that."""


@dataclass(frozen=True)
class Mailbox:
    """One with many messages, of which a few are unseen."""

    scene: Scene
    mailboxid: UUID
    unseen: list[int]

    def listed(self) -> list[int]:
        """The UIDs that the index holds."""
        query = "SELECT uid FROM $mail.firstunseen WHERE mailboxid = %s"
        return sorted(row.uid for row in self.scene.execute(query, self.mailboxid))

    def drop_partition(self) -> None:
        """The index forgets it, with one event."""
        self.scene.execute("DELETE FROM $mail.firstunseen WHERE mailboxid = %s", self.mailboxid)


@pytest.fixture(scope="module")
def mailboxes(indexed_scene: Scene) -> tuple[Mailbox, Mailbox]:
    """A small and a large one, right in all tables; all their events have been looked at."""
    found = filled(indexed_scene, SMALL), filled(indexed_scene, LARGE)
    indexed_scene.await_all_examined()
    return found


def filled(scene: Scene, messages: int) -> Mailbox:
    """A mailbox with so many messages."""
    mailbox = uuid.uuid1()
    values = {name: value for name, value in cells().items() if name != "userflags"}
    columns = ("messageid", "mailboxid", "uid", *values)
    unseen = [messages * each // UNSEEN for each in range(1, UNSEEN + 1)]
    rows = [
        (uuid.uuid1(), mailbox, uid, *({**values, "flagseen": uid not in unseen}).values())
        for uid in range(1, messages + 1)
    ]
    inserts = [scene.prepare(insertion(table, columns)) for table in ("$truth", "$projection")]
    for start in range(0, messages, TOGETHER):  # far sooner than a delay in both tables
        for insert in inserts:
            execute_concurrent_with_args(scene.session, insert, rows[start : start + TOGETHER])
    index = insertion("$mail.firstunseen", ("mailboxid", "uid"))
    scene.execute_many(index, [(mailbox, uid) for uid in unseen])
    return Mailbox(scene, mailbox, unseen)


def test_a_mailbox_ten_times_as_large_is_looked_at_in_the_same_memory(
    indexed_scene: Scene, mailboxes: tuple[Mailbox, Mailbox]
) -> None:
    small, large = mailboxes
    with CpuWatch({}, indexed_scene.stream.session) as watch:
        woken_and_repaired(indexed_scene, small)
        before = watch.rss
        woken_and_repaired(indexed_scene, large)
        after = watch.rss
    assert before > 0
    assert after - before < MIB_MORE


def woken_and_repaired(scene: Scene, mailbox: Mailbox) -> None:
    """Its index is made anew; so is a row of another mailbox whose event came with it."""
    examined = scene.metric("reconciler_keys_examined_total")
    missing = Place()
    mailbox.drop_partition()
    scene.write_truth(missing, cells())
    until("its index lists it again", lambda: mailbox.listed() == mailbox.unseen)
    until("the other is repaired", partial(scene.agrees, missing))
    until(
        "all of it was examined",
        lambda: scene.metric("reconciler_keys_examined_total") - examined > mailbox.unseen[-1],
    )
