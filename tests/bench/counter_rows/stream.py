"""A plain row that one writer maintains from the stream of changes.

The mail servers count nothing: their change of the truth is captured. The one writer reads the
changes in their order, as from one partition of a topic, and writes each mailbox's sums, whole,
with the position of the last change in them, once for all changes of a batch. The position is the
write time, too: of two writes the one that counts further wins, whoever sends it and whenever it
arrives. A writer that starts reads again from the position that was committed last, and leaves
out what a row's own position says it holds.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from deploy.mailserver.faults import FaultKind, ProcessDiedError
from deploy.mailserver.history import CounterWrite
from tests.bench.counter_rows import truth
from tests.bench.counter_rows.tables import COLUMNS, Counting, Writer, added
from tests.bench.counter_rows.wire import Place, Sent, Wire, persist, until_answered

BATCH = 500
"""Changes that are read together, at most."""
EVENTS = "events"
"""What faults of the topic are planned for, as those of statements are for a projection."""


class Topic:
    """One partition: changes by position, from 1, and how far they have been settled."""

    def __init__(self) -> None:
        self.committed = 0
        self._changes: list[CounterWrite] = []
        self._open = True
        self._moved = threading.Condition()

    def append(self, write: CounterWrite) -> int:
        """Add a change; its position."""
        with self._moved:
            self._changes.append(write)
            self._moved.notify_all()
            return len(self._changes)

    @property
    def end(self) -> int:
        """The position of the newest change."""
        return len(self._changes)

    def after(self, position: int) -> list[tuple[int, CounterWrite]]:
        """Up to `BATCH` changes behind a position; waits for one; empty where it was closed."""
        with self._moved:
            self._moved.wait_for(lambda: len(self._changes) > position or not self._open)
            found = self._changes[position : position + BATCH]
        return list(enumerate(found, position + 1))

    def commit(self, position: int) -> None:
        """Everything up to this position is settled."""
        with self._moved:
            self.committed = position
            self._moved.notify_all()

    def wait_until_settled(self, position: int) -> None:
        """Return when the change at this position is, or when the topic is closed."""
        with self._moved:
            self._moved.wait_for(lambda: self.committed >= position or not self._open)

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._moved:
            self._open = False
            self._moved.notify_all()


@dataclass(frozen=True, slots=True)
class Row:
    """A mailbox's sums, up to and with the change at `position`."""

    count: int = 0
    unseen: int = 0
    position: int = 0


def with_changes(row: Row, changes: Iterable[tuple[int, CounterWrite]]) -> Row:
    """The row with the changes that it does not hold yet. They are in order."""
    for position, write in changes:
        if position > row.position:
            row = Row(**added({"count": row.count, "unseen": row.unseen}, write), position=position)
    return row


class Maintainer:
    """The one writer. It keeps in memory what it has written."""

    UPDATE = (
        "UPDATE {keyspace}.streamrows USING TIMESTAMP ? SET count = ?, unseen = ?, position = ?"
        " WHERE mailboxid = ?"
    )
    READ = "SELECT count, unseen, position FROM {keyspace}.streamrows WHERE mailboxid = ?"

    def __init__(self, place: Place, topic: Topic) -> None:
        self._wire, self._topic = Wire(place), topic
        self._rows: dict[UUID | str, Row] = {}

    def run(self) -> None:
        """Batch after batch until the topic is closed. Raises ProcessDiedError."""
        while self.step():
            pass

    def step(self) -> bool:
        """One batch; False where the topic was closed instead. Raises ProcessDiedError."""
        batch = self._topic.after(self._topic.committed)
        if batch:
            self._settle(batch)
            self._topic.commit(batch[-1][0])
        return bool(batch)

    def _settle(self, batch: Sequence[tuple[int, CounterWrite]]) -> None:
        by_mailbox: defaultdict[UUID | str, list[tuple[int, CounterWrite]]] = defaultdict(list)
        for position, write in batch:
            self._wire.meet(write)
            by_mailbox[write.owner].append((position, write))
        self._recall(owner for owner in by_mailbox if owner not in self._rows)
        due = {
            owner: row
            for owner, changes in by_mailbox.items()
            if (row := self._next(owner, changes)) != self._rows[owner]
        }
        sent = {owner: self._send(owner, row) for owner, row in due.items()}
        for owner, row in due.items():
            persist(partial(self._finish, owner, row, sent), until_answered())
            self._rows[owner] = row

    def _next(self, owner: UUID | str, changes: Sequence[tuple[int, CounterWrite]]) -> Row:
        return with_changes(self._rows[owner], changes)

    def _recall(self, owners: Iterable[UUID | str]) -> None:
        for owner in owners:
            persist(partial(self._read, owner), until_answered())

    def _read(self, owner: UUID | str) -> None:
        rows = self._wire.place.ask(self.READ, [owner])
        self._rows[owner] = Row(*rows[0]) if rows else Row()

    def _send(self, owner: UUID | str, row: Row) -> Sent:
        values: list[object] = [row.position, row.count, row.unseen, row.position, owner]
        return self._wire.start(owner, self.UPDATE, values)

    def _finish(self, owner: UUID | str, row: Row, sent: dict[UUID | str, Sent]) -> None:
        """Wait for the answer; where there was none the last time, send it again first."""
        (sent.pop(owner, None) or self._send(owner, row)).result()


class Recounter(Maintainer):
    """It believes no event: an event says which mailbox to count anew, from the truth."""

    def _next(self, owner: UUID | str, changes: Sequence[tuple[int, CounterWrite]]) -> Row:
        found: list[Any] = []
        persist(lambda: found.extend(self._wire.place.ask(truth.READ, [owner])), until_answered())
        count, unseen = (sum(getattr(row, each) for row in found) for each in COLUMNS)
        return Row(count, unseen, changes[-1][0])


class StreamTable(Counting):
    """Its writers put changes into the topic; `ahead` is how many of them may be unsettled."""

    name, table = "stream", "streamrows"
    ddl = (
        "CREATE TABLE IF NOT EXISTS {keyspace}.streamrows"
        " (mailboxid timeuuid PRIMARY KEY, count bigint, unseen bigint, position bigint)"
    )
    ahead = 1
    maintainer = Maintainer

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._topic = Topic()
        self._failed: list[BaseException] = []

    def writer(self) -> Writer:
        """It only says what has changed."""
        return _Telling(self.place, self._topic, self.ahead)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The maintainer works inside."""
        thread = threading.Thread(target=self._maintain, daemon=True)
        thread.start()
        try:
            yield
            self._topic.wait_until_settled(self._topic.end)
        finally:
            self._topic.close()
            thread.join()
        assert not self._failed, self._failed

    def _maintain(self) -> None:
        """One maintainer after the other, each with no more than what is stored."""
        while True:
            try:
                return self.maintainer(self.place, self._topic).run()
            except ProcessDiedError:
                continue
            except BaseException as failed:
                self._failed.append(failed)
                self._topic.close()
                raise


class AheadTable(StreamTable):
    """The same; users do not wait for the count, as they do not in a mail server."""

    name, ahead = "stream, nobody waits", 100


class RecountTable(StreamTable):
    """The reconciler's own way: absolute values from the truth, whatever the events say."""

    name, maintainer = "stream, counted anew", Recounter


class _Telling:
    """An event may be lost, or come twice: the agent sends some again."""

    TIMES: ClassVar = {FaultKind.NOT_SENT: 0, FaultKind.DOUBLED: 2}

    def __init__(self, place: Place, topic: Topic, ahead: int) -> None:
        self._faults, self._topic, self._ahead = place.faults, topic, ahead
        self._told: list[int] = []

    def count(self, write: CounterWrite) -> None:
        fault = self._faults.meet(replace(write, projection=EVENTS))
        times = self.TIMES.get(fault.kind, 1) if fault is not None else 1
        self._told += [self._topic.append(write) for _ in range(times)]
        while len(self._told) >= self._ahead:
            self._topic.wait_until_settled(self._told.pop(0))
