"""A mail server on tables in memory: its statements are recorded, and some meet errors."""

import random
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cassandra import InvalidRequest, OperationTimedOut

from deploy.comparison.counters import wanted_sums
from deploy.comparison.differences import differences
from deploy.comparison.messages import DifferenceKind
from deploy.comparison.snapshot import Snapshot, snapshot_of
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.directory import Directory
from deploy.mailserver.faults import Faults
from deploy.mailserver.mail import Clock, Flags, Message
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer
from deploy.mailserver.worker import Office, Worker
from deploy.nemesis.checker import PLACES, check
from deploy.nemesis.history import UserHistory, UserWrite, read_history
from deploy.nemesis.session import RecordedSession
from deploy.nemesis.tables import TABLES, FinalRow, FinalTables
from deploy.nemesis.verdict import Judgement
from tests.fakes.memory_cassandra import KEYSPACE, MARKER, MemoryCassandra, Table

SKEW_US = 1000
LISTED = namedtuple("LISTED", ["id", "name", "cid", "isinline"])
BASE = namedtuple("BASE", ["namespace", "user"])


class UnluckySession:
    """Answers some writes with an error; of those that time out some are applied nevertheless."""

    def __init__(self, session: MemoryCassandra, seed: int, errors: float) -> None:
        self._session = session
        self._chance = random.Random(seed)
        self.errors = errors

    def prepare(self, cql: str) -> Any:
        return self._session.prepare(cql)

    def execute_async(self, bound: Any) -> Any:
        error: Exception | None = None
        applied = bound.cql.startswith("SELECT") or self._chance.random() >= self.errors
        if not applied:
            error = self._chance.choice([InvalidRequest("no"), OperationTimedOut(None, None)])
            applied = isinstance(error, OperationTimedOut) and self._chance.random() < 0.5
        answer = self._session.execute_async(bound).result() if applied else None
        return Future(answer, error)


@dataclass
class Future:
    answer: Any
    error: Exception | None
    attempted_hosts: list[str] = field(default_factory=lambda: ["127.0.0.1"])
    message: Any = field(default_factory=lambda: SimpleNamespace(timestamp=None))

    def add_callbacks(self, callback: Any, errback: Any) -> None:
        if self.error is not None:
            errback(self.error)
        else:
            callback(list(self.answer) or [(self.answer.was_applied,)])

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


class NemesisScene:
    """Tables, a history, and a mail server. The tables' writes are nobody's but the users'."""

    def __init__(self, folder: Path, seed: int = 1, errors: float = 0.0) -> None:
        self.tables = MemoryCassandra()
        self.unlucky = UnluckySession(self.tables, seed, errors)
        self.path = folder / "history.jsonl"
        self.history = UserHistory(self.path)
        self.session = RecordedSession(self.unlucky, self.history)
        self.server = MailServer(self.session, KEYSPACE)

    def work(self, operations: int, seed: int) -> None:
        """Do random operations, one after the other."""
        office = Office(self.session, KEYSPACE, Directory(), Faults())
        errors, self.unlucky.errors = self.unlucky.errors, 0.0
        office.create_mailboxes(2, 2)
        self.unlucky.errors = errors
        Worker(office, 0, seed).work(range(operations))

    def message(self, flags: Flags | None = None) -> Message:
        """A new message in a new mailbox."""
        mailboxid = self.server.create_mailbox("ana@example.org", "INBOX")
        flags = flags or Flags(frozenset(), frozenset({"work"}))
        return self.server.append(mailboxid, random_content(random.Random(1)), flags)

    def writes(self) -> list[UserWrite]:
        with self.path.open(encoding="utf-8") as lines:
            return read_history(lines)

    def judged(self) -> Judgement:
        return check(self.writes(), self.final(), SKEW_US)

    def names(self) -> list[str]:
        return [str(each.name) for each in self.judged().violations]

    def final(self) -> FinalTables:
        return {name: list(_final_rows(self.tables.tables[name])) for name in TABLES}

    def snapshot(self) -> Snapshot:
        final = self.final()
        return snapshot_of(lambda name: [row.values for row in final[name]])

    def table(self, name: str) -> Table:
        return self.tables.tables[name]

    def put(self, table: str, key: tuple[object, ...], cell: str, value: object) -> None:
        """Write a cell past the users."""
        self.table(table).put(key, cell, Clock().now_us(), value)

    def delete(self, table: str, key: tuple[object, ...]) -> None:
        """Delete a row past the users."""
        self.table(table).deletes[key[0]].append((key, Clock().now_us()))

    def repair(self) -> None:
        """Do what a perfect product would: make every projection what its truth says."""
        for _ in range(2):
            snapshot = self.snapshot()
            for each in list(differences(snapshot)):
                if each.projection in PLACES and each.kind in REPAIRED:
                    Repair(self, snapshot).repair(each)
            for counters in COUNTER_TABLES.values():
                for owner, wanted in wanted_sums(counters, snapshot).items():
                    self.table(counters.table).counters[owner,] = wanted


REPAIRED = (DifferenceKind.MISSING, DifferenceKind.EXTRA, DifferenceKind.CELLS)


@dataclass
class Repair:
    scene: NemesisScene
    snapshot: Snapshot

    def repair(self, mismatch: Any) -> None:
        table, key_of = PLACES[mismatch.projection]
        key = key_of(mismatch.row)
        wanted = self._wanted(mismatch)
        if mismatch.kind is not DifferenceKind.MISSING and table != "applicableflag":
            self.scene.delete(table, key)
        for cell, value in wanted.items():
            self.scene.put(table, key, cell, value)

    def _wanted(self, mismatch: Any) -> dict[str, object]:
        """The cells that the truth gives the row; none if there should be no row."""
        if mismatch.kind is DifferenceKind.EXTRA:
            return {}
        mailboxid, name = mismatch.row
        match mismatch.projection:
            case "messages":
                [row] = self.snapshot.truth[mismatch.row]
                flags = {f"userflags.{flag}": flag for flag in row["userflags"] or ()}
                others = {name: value for name, value in row.items() if name not in NOT_CELLS}
                return {**others, **flags}
            case "applicable_flags":
                return {f"userflags.{flag}": flag for flag in mismatch.columns}
            case "listed_rights":
                letters = (self.snapshot.lists[mailboxid] or {})[name]
                return {f"rights.{letter}": letter for letter in letters}
            case "user_rights":
                return {"rights": "".join(sorted((self.snapshot.lists[mailboxid] or {})[name]))}
        return {MARKER: MARKER}


NOT_CELLS = ("mailboxid", "uid", "userflags")


def _final_rows(table: Table) -> Any:
    keys = table.columns[: table.keys]
    for key, counts in table.counters.items():
        yield FinalRow({**dict(zip(keys, key, strict=True)), **counts})
    for key in list(table.cells):
        live = table.live(key)
        if live:
            yield _final_row(table, key, live)


def _final_row(table: Table, key: tuple[object, ...], live: dict[str, object]) -> FinalRow:
    values: dict[str, Any] = dict.fromkeys(table.columns)
    values |= dict(zip(table.columns, key, strict=False))
    times: dict[str, Any] = {}
    for column in table.columns[table.keys :]:
        elements = sorted(each for each in live if each.startswith(f"{column}."))
        if elements:
            values[column] = {live[each] for each in elements}
            times[column] = [table.cells[key][each][0] for each in elements]
        elif column in live:
            values[column], times[column] = _value(live[column]), table.cells[key][column][0]
    if isinstance(values.get("attachments"), list):
        times["attachments"] = [times["attachments"]] * len(values["attachments"])
    return FinalRow(values, times)


def _value(value: Any) -> Any:
    """As the driver returns it."""
    if isinstance(value, SimpleNamespace):
        return BASE(value.namespace, value.user)
    if isinstance(value, list):
        return [LISTED(**vars(each)) for each in value]
    return value
