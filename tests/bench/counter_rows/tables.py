"""Ways to count in a table that every writer writes to (`stream` has the one for one writer).

A `Counting` is one table; its writers are the mail servers. Each writer counts one change at a
time, and stands for a process: after ProcessDiedError another takes its place, with no more than
what the table holds.
"""

import itertools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from cassandra import ConsistencyLevel

from deploy.mailserver import james
from deploy.mailserver.counters import CURRENT_QUOTA, MAILBOX_COUNTERS, counter_statement
from deploy.mailserver.history import CounterWrite
from deploy.mailserver.mail import Clock
from deploy.mailserver.mailserver import new_timeuuid
from tests.bench.counter_rows.book import Stored, Sums
from tests.bench.counter_rows.wire import Place, Wire, persist, until_answered

COLUMNS = ("count", "unseen")
SERIAL: int = ConsistencyLevel.SERIAL
"""Such a read first ends what another has begun."""


class Writer(Protocol):
    """A mail server, as far as it counts."""

    def count(self, write: CounterWrite) -> None:
        """Return when the change is counted, or given up. Raises ProcessDiedError."""


class Counting(ABC):
    """A table and its writers."""

    name: str
    table: str
    ddl: str

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def writer(self) -> Writer:
        """Another process, which knows only what is stored."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside, whatever works behind the writers does so; at the end all is counted."""
        yield

    def create(self) -> None:
        """Make the table unless it is there."""
        self.place.session.execute(self.ddl.format(keyspace=self.place.keyspace))

    def sums_of(self, mailboxid: UUID) -> Sums:
        """A mailbox's numbers, as a user's client asks for them."""
        cql = f"SELECT count, unseen FROM {{keyspace}}.{self.table} WHERE mailboxid = ?"
        rows = self.place.ask(cql, [mailboxid])
        return {each: sum(getattr(row, each) or 0 for row in rows) for each in COLUMNS}

    def stored(self, mailboxes: Iterable[UUID]) -> Stored:
        """The numbers of all these mailboxes."""
        return {each: self.sums_of(each) for each in mailboxes}


def added(sums: Mapping[str, int | None], write: CounterWrite) -> dict[str, int]:
    """The sums (None: no row yet) with a change's part."""
    return {each: (sums[each] or 0) + write.added.get(each, 0) for each in COLUMNS}


class CounterTable(Counting):
    """Counters as James has them. An update without an answer is given up, as of mailboxes."""

    name, table = "counter", "mailboxcounters"
    pauses_s: tuple[float, ...] = MAILBOX_COUNTERS.pauses_s

    def create(self) -> None:
        """James's own table."""
        for cql in james.schema_statements(self.place.keyspace):
            if f".{self.table} " in cql:
                self.place.session.execute(cql)

    def writer(self) -> Writer:
        """It adds."""
        return _Adding(Wire(self.place), self.pauses_s)


class _Adding:
    def __init__(self, wire: Wire, pauses_s: tuple[float, ...]) -> None:
        self._wire, self._pauses_s = wire, pauses_s

    def count(self, write: CounterWrite) -> None:
        self._wire.meet(write)
        cql, values = counter_statement(write, "{keyspace}")
        persist(lambda: self._wire.write(write.owner, cql, values), self._pauses_s)


class RetriedCounterTable(CounterTable):
    """The same counters; an update without an answer is sent again, as of quotas."""

    name = "counter, retried"
    pauses_s = CURRENT_QUOTA.pauses_s


class ConditionTable(Counting):
    """A plain row that is read, and written on the condition that it is still what was read."""

    name, table = "LWT", "conditionrows"
    ddl = (
        "CREATE TABLE IF NOT EXISTS {keyspace}.conditionrows"
        " (mailboxid timeuuid PRIMARY KEY, count bigint, unseen bigint)"
    )

    def writer(self) -> Writer:
        """It sets, if."""
        return _Conditional(Wire(self.place))


class _Conditional:
    """After no answer it reads anew, and tries again."""

    UPDATE = (
        "UPDATE {keyspace}.conditionrows SET count = ?, unseen = ?"
        " WHERE mailboxid = ? IF count = ? AND unseen = ?"
    )
    READ = "SELECT * FROM {keyspace}.conditionrows WHERE mailboxid = ?"

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def count(self, write: CounterWrite) -> None:
        self._wire.meet(write)
        levels = itertools.chain([ConsistencyLevel.QUORUM], itertools.repeat(SERIAL))
        persist(lambda: self._attempt(write, next(levels)), until_answered())

    def _attempt(self, write: CounterWrite, level: int) -> None:
        rows = self._wire.place.ask(self.READ, [write.owner], level)
        if rows and self._has_counted(rows[0]):
            return
        now = _sums(rows[0] if rows else None)
        while True:
            values = [*added(now, write).values(), *self._marks(), write.owner, *now.values()]
            answer = self._wire.write(write.owner, self.UPDATE, values)
            if answer.applied:
                return
            now = _sums(answer)

    def _marks(self) -> list[object]:
        return []

    def _has_counted(self, row: Any) -> bool:
        return False


def _sums(row: Any) -> dict[str, int | None]:
    """Of a row, or of an answer that has no values where there is no row."""
    values = row._asdict() if row is not None else {}
    return {each: values.get(each) for each in COLUMNS}


class DeduplicatedTable(Counting):
    """The same; the row also keeps the number of each writer's last change, which tells it all."""

    name, table = "LWT, deduplicated", "deduplicatedrows"
    ddl = (
        "CREATE TABLE IF NOT EXISTS {keyspace}.deduplicatedrows"
        " (mailboxid timeuuid PRIMARY KEY, count bigint, unseen bigint, last map<uuid, bigint>)"
    )

    def writer(self) -> Writer:
        """It sets, if, and signs."""
        return _Deduplicated(Wire(self.place))


class _Deduplicated(_Conditional):
    UPDATE = (
        "UPDATE {keyspace}.deduplicatedrows SET count = ?, unseen = ?, last[?] = ?"
        " WHERE mailboxid = ? IF count = ? AND unseen = ?"
    )
    READ = "SELECT * FROM {keyspace}.deduplicatedrows WHERE mailboxid = ?"

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._name, self._number = new_timeuuid(), 0

    def count(self, write: CounterWrite) -> None:
        self._number += 1
        super().count(write)

    def _marks(self) -> list[object]:
        return [self._name, self._number]

    def _has_counted(self, row: Any) -> bool:
        return bool((row.last or {}).get(self._name) == self._number)


class SubrowTable(Counting):
    """Each writer has a row of its own in the mailbox, and writes its own sums there, whole.

    Nobody else writes that row, so a time-out is answered by the same write again, and the later
    of two writes wins by its write time. A reader adds up the rows of the mailbox. A new process
    begins new rows: what its predecessor sent may still arrive.
    """

    name, table = "sub-rows", "subrows"
    ddl = (
        "CREATE TABLE IF NOT EXISTS {keyspace}.subrows"
        " (mailboxid timeuuid, writer uuid, count bigint, unseen bigint,"
        " PRIMARY KEY (mailboxid, writer))"
    )

    def writer(self) -> Writer:
        """It sets what is its own."""
        return _Owning(Wire(self.place))


class _Owning:
    UPDATE = (
        "UPDATE {keyspace}.subrows USING TIMESTAMP ? SET count = ?, unseen = ?"
        " WHERE mailboxid = ? AND writer = ?"
    )

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._name, self._clock = new_timeuuid(), Clock()
        self._own: defaultdict[UUID | str, dict[str, int]] = defaultdict(
            lambda: dict.fromkeys(COLUMNS, 0)
        )

    def count(self, write: CounterWrite) -> None:
        self._wire.meet(write)
        own = self._own[write.owner] = added(self._own[write.owner], write)
        values: list[object] = [self._clock.now_us(), *own.values(), write.owner, self._name]
        again = partial(self._wire.write, write.owner, self.UPDATE, values)
        persist(again, until_answered())
