"""A mail keyspace under a running stream: rows broken on purpose, and what became of them.

Tables are written and read here by plain CQL, by code that shares nothing with the reconciler.
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from cassandra.cluster import PreparedStatement, Session
from cassandra.concurrent import execute_concurrent_with_args
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from checkpoints.bookmarks import Bookmark, flat
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraJournal,
    CassandraLineage,
    Store,
)
from checkpoints.clock import now_micros, to_micros
from checkpoints.schema.upgrade import upgrade
from reconcilers.declared.capture import text_of
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, load
from streaming.topics import Watcher
from tests.endpoints import Endpoints
from tests.sessions import replication_of
from tests.stack.streams import PATIENCE, Stream, until

SECOND_US = 1_000_000
LARGEST = 8 * 1024 * 1024
"""Bytes of a record."""
FLAGS = ("answered", "deleted", "draft", "flagged", "recent", "seen", "user")
SINGLE_CELLS = (
    "modseq",
    *(f"flag{name}" for name in FLAGS),
    "threadid",
    "internaldate",
    "save_date",
    "bodystartoctet",
    "fullcontentoctets",
    "headercontent",
)
"""The columns of both tables that have a write time: no key, no set."""

NAMES = {
    "$truth": "$mail.imapuidtable",
    "$projection": "$mail.messageidtable",
    "$content": "$mail.messagev3",
}
"""What stands for a table in CQL; ``$mail`` is its keyspace, ``$own`` that of the reconciler."""
Cells = dict[str, Any]
KeyAndValue = tuple[bytes | None, bytes | None]
RowKey = tuple[UUID, int]
Answer = subprocess.CompletedProcess[str]
"""What a command of `reconcile` has printed, and its exit code."""


@dataclass(frozen=True)
class Place:
    """A message's UID in a mailbox: one row of the truth, one of the projection."""

    messageid: UUID = field(default_factory=uuid.uuid1)
    mailboxid: UUID = field(default_factory=uuid.uuid1)
    uid: int = 1

    @property
    def row(self) -> RowKey:
        """Its key in the projection."""
        return (self.mailboxid, self.uid)

    @property
    def ids(self) -> Cells:
        """Its key in the truth, as cells."""
        return {"messageid": self.messageid, "mailboxid": self.mailboxid, "uid": self.uid}

    @property
    def event_key(self) -> bytes:
        """The key of an event of the truth, as the agent writes it."""
        ids = {"messageid": str(self.messageid), "mailboxid": str(self.mailboxid)}
        return json.dumps({**ids, "uid": self.uid}, separators=(",", ":")).encode()


def mailbox(rows: int) -> list[Place]:
    """So many messages of one mailbox."""
    first = Place()
    return [replace(Place(), mailboxid=first.mailboxid, uid=uid) for uid in range(1, rows + 1)]


def cells(**changes: Any) -> Cells:
    """All cells that a message has beside its ids, none null; ``changes`` by column."""
    received = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    return {
        "modseq": 7,
        **{f"flag{name}": False for name in FLAGS},
        "userflags": {"kept"},
        "threadid": UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        "internaldate": received,
        "save_date": received,
        "bodystartoctet": 300,
        "fullcontentoctets": 4_000,
        "headercontent": "header",
        **changes,
    }


def insertion(table: str, columns: Collection[str]) -> str:
    """CQL that adds a row, with a mark for each of its cells."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def now_us() -> int:
    """This machine's time as a write time."""
    return time.time_ns() // 1000


@dataclass
class Scene:
    """One stream, the keyspace it watches, and hands on both."""

    session: Session
    stack: Endpoints
    keyspace: str
    own: str
    stream: Stream
    began: int = field(default_factory=now_us)
    """When it began to watch, as a write time."""

    @property
    def journal(self) -> CassandraJournal:
        """As the stream keeps it."""
        return CassandraJournal(Store(self.session, self.own), scope=self.keyspace)

    @property
    def lineage(self) -> CassandraLineage:
        """As the stream keeps it."""
        return CassandraLineage(Store(self.session, self.own))

    def mark_swept(self) -> None:
        """As at the end of a sweep: what is remembered is all that there is."""
        watching = self.lineage.watching()
        assert watching is not None
        self.lineage.mark_swept(now_micros(), watching.since)

    # --- writing behind the mail server's back

    def write_truth(self, place: Place, values: Cells, at: int | None = None) -> None:
        """An UPDATE of the truth row, now or with a write time (µs)."""
        self._update("$truth", values, place.ids, at)

    def write_projection(self, place: Place, values: Cells, at: int | None = None) -> None:
        """An UPDATE of the projection row, now or with a write time (µs)."""
        where = {"mailboxid": place.mailboxid, "uid": place.uid}
        self._update("$projection", values, where, at)

    def write_both(self, place: Place, values: Cells, at: int | None = None) -> None:
        """A message as it should be."""
        self.write_truth(place, values, at)
        self.write_projection(place, {"messageid": place.messageid, **values}, at)

    def _update(self, table: str, values: Cells, where: Cells, at: int | None) -> None:
        """Sets by element, as the mail server writes them."""
        single = {name: value for name, value in values.items() if name != "userflags"}
        assignments = [f"{name} = %s" for name in single]
        bound: list[Any] = list(single.values())
        if values.get("userflags"):
            assignments.append("userflags = userflags + %s")
            bound.append(values["userflags"])
        using = "" if at is None else f" USING TIMESTAMP {at}"
        key = " AND ".join(f"{name} = %s" for name in where)
        cql = f"UPDATE {table}{using} SET {', '.join(assignments)} WHERE {key}"
        self.execute(cql, *bound, *where.values())

    def write_content(self, place: Place) -> None:
        """Its message's content, as far as anybody asks for it."""
        self.execute("INSERT INTO $content (messageid) VALUES (%s)", place.messageid)

    def delete_content(self, place: Place) -> None:
        """As the mail server does when the truth has no row of the message any more."""
        self.execute("DELETE FROM $content WHERE messageid = %s", place.messageid)

    def execute(self, cql: str, *values: Any) -> Any:
        """One statement, with `NAMES` for keyspaces and tables."""
        return self.session.execute(self._named(cql), values)

    def prepare(self, cql: str) -> PreparedStatement:
        """A statement with the same names."""
        return self.session.prepare(self._named(cql))

    def execute_many(self, cql: str, rows: Iterable[Sequence[Any]]) -> None:
        """A statement for each of these rows of values."""
        execute_concurrent_with_args(self.session, self.prepare(cql), list(rows))

    def _named(self, cql: str) -> str:
        for short, table in NAMES.items():
            cql = cql.replace(short, table)
        return cql.replace("$mail", self.keyspace).replace("$own", self.own)

    def delete_truth(self, place: Place) -> None:
        """As the mail server does: every UID of the message in this mailbox."""
        self.execute(
            "DELETE FROM $truth WHERE messageid = %s AND mailboxid = %s",
            place.messageid,
            place.mailboxid,
        )

    def leave_behind(self, place: Place) -> None:
        """A projection row whose message was expunged: the projection's delete was lost.

        It is removed once the truth's delete is heard. A row that the truth never had is first
        looked at again, until its own event cannot come any more.
        """
        self.write_both(place, cells())
        self.delete_truth(place)

    def delete_projection(self, place: Place) -> None:
        """The projection row, in the mail server's way."""
        self.execute("DELETE FROM $projection WHERE mailboxid = %s AND uid = %s", *place.row)

    # --- reading both sides

    def truth_at(self, place: Place) -> Cells | None:
        """The truth row's cells, the messageid among them, None where there is no row."""
        row = self.execute(
            "SELECT * FROM $truth WHERE messageid = %s AND mailboxid = %s AND uid = %s",
            place.messageid,
            *place.row,
        ).one()
        return _as_cells(row)

    def projected_at(self, row: RowKey) -> Cells | None:
        """The projection row's cells, None where there is no row."""
        found = self.execute("SELECT * FROM $projection WHERE mailboxid = %s AND uid = %s", *row)
        return _as_cells(found.one())

    def agrees(self, place: Place) -> bool:
        """Whether the projection holds at this place exactly what the truth holds."""
        truth = self.truth_at(place)
        return truth == self.projected_at(place.row)

    def lacks(self, row: RowKey) -> bool:
        """Whether the projection has no such row."""
        return self.projected_at(row) is None

    def write_times(self, row: RowKey) -> dict[str, int]:
        """When each cell of a projection row was written (µs); null cells are left out."""
        asked = ", ".join(f"writetime({name}) AS {name}" for name in ("messageid", *SINGLE_CELLS))
        found = self.execute(
            f"SELECT {asked} FROM $projection WHERE mailboxid = %s AND uid = %s", *row
        ).one()
        times = {} if found is None else found._asdict()
        return {name: at for name, at in times.items() if at is not None}

    # --- what the stream says of it

    def findings(self, row: RowKey, **facts: Any) -> list[dict[str, Any]]:
        """All that was logged of a row, in order, if it has these facts."""
        return self.stream.findings(mailboxid=row[0], uid=row[1], **facts)

    def kinds(self, row: RowKey) -> set[str]:
        """The kinds of finding that a row had."""
        return {str(finding["kind"]) for finding in self.findings(row)}

    def ended(self, row: RowKey, how: str = "verified") -> bool:
        """Whether a finding of this row has ended so."""
        return any(each["message"].startswith(f"{how}: ") for each in self.findings(row))

    def is_held(self, row: RowKey, because: str, **facts: Any) -> bool:
        """Whether a finding of this row was held for this reason."""
        held = self.findings(row, state="held", **facts)
        return any(because in each["message"] for each in held)

    def await_verified(self, row: RowKey) -> None:
        """Until a repair of this row was seen to hold."""
        until(f"the repair of {row} is verified", partial(self.ended, row))

    def reported(self, row: RowKey, kind: str) -> dict[str, Any]:
        """The report of this kind, once it is there."""
        told = partial(self.findings, row, kind=kind, state="reported")
        return dict(until(f"{kind} is reported", told)[0])

    def remembered(self, place: Place) -> bool:
        """Whether a look has read the message's truth at this place."""
        row = self.execute(
            "SELECT recorded_at FROM $own.lineage_by_message"
            " WHERE messageid = %s AND mailboxid = %s AND uid = %s",
            place.messageid,
            *place.row,
        ).one()
        return row is not None and row.recorded_at is not None

    def await_remembered(self, places: Iterable[Place]) -> None:
        """Until each was examined once."""
        for place in places:
            until(f"{place} was examined", partial(self.remembered, place))

    def is_known(self, place: Place) -> bool:
        """Whether a row of the memory names the message at this place."""
        rows = self.execute(
            "SELECT messageid FROM $own.lineage_by_row WHERE mailboxid = %s AND uid = %s",
            *place.row,
        )
        return place.messageid in {row.messageid for row in rows}

    @property
    def metrics_port(self) -> int:
        """Where the stream serves its metrics."""
        said = self.stream.said("metrics on port")[-1]["message"]
        return int(str(said).rpartition(" ")[2])

    def metric(self, name: str, **labels: str) -> float:
        """A metric's value, summed over what the labels leave open."""
        address = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if re.match(rf"{name}(\{{|\s)", line) and all(each in line for each in wanted)
        )

    def await_all_examined(self) -> list[Place]:
        """Until whatever was written up to now has been examined.

        Proved by wrong cells that are written after it, with events of both tables: each is found
        and repaired only once its own delay has passed. Returns where they were.
        """
        canaries = [Place() for _ in range(4)]
        for place in canaries:
            self.write_both(place, cells())
            self.write_projection(place, {"flagseen": True})
        for place in canaries:
            until("the canary was found and repaired", partial(self.agrees, place))
        return canaries

    def command(self, *arguments: str) -> Answer:
        """Another command of `reconcile`, with the stream's settings."""
        return reconcile(*arguments, "--config", str(self.stream.config))

    def succeed(self, *arguments: str) -> Answer:
        """A command that has to end with 0."""
        answer = self.command(*arguments)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer

    def refuse(self, *arguments: str) -> str:
        """The last line of a command that has to end with 2."""
        answer = self.command(*arguments)
        assert answer.returncode == 2, answer.stdout + answer.stderr
        return answer.stderr.strip().splitlines()[-1]

    # --- Kafka

    def publish(self, records: Iterable[KeyAndValue]) -> None:
        """Publish these to the agent's topic; returns when Kafka has them."""
        publish(self.stack, self.stack.topic_prefix, records)

    def events(self, mailboxes: Iterable[UUID]) -> list[KeyAndValue]:
        """All events of both tables so far that name one of these mailboxes."""
        names = [str(mailbox).encode() for mailbox in mailboxes]
        return [
            (record.key, record.value)
            for record in events_of(self.stack, self.keyspace, "imapuidtable", "messageidtable")
            if any(name in record.key or name in record.value for name in names)
        ]

    def dead_letters(self) -> list[dict[str, Any]]:
        """All that were kept so far."""
        topic = f"{self.own}.dead-letters"
        return [json.loads(record.value) for record in records_of(self.stack, topic)]


def _as_cells(row: Any) -> Cells | None:
    """A row of either table, comparable: times with their zone, no elements an empty set."""
    if row is None:
        return None
    found = {**row._asdict(), "userflags": set(row.userflags or ())}
    for name in ("internaldate", "save_date"):
        found[name] = found[name] and found[name].replace(tzinfo=UTC)
    return found


def records_of(stack: Endpoints, *topics: str) -> list[Any]:
    """All records that topics hold now."""
    with closing(
        KafkaConsumer(
            bootstrap_servers=stack.bootstrap_servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
    ) as consumer:
        consumer.subscribe(list(topics))
        found: list[Any] = []
        until("Kafka gives the partitions", lambda: _poll(consumer, found))
        ends = consumer.end_offsets(list(consumer.assignment()))
        until(
            "all records were read",
            lambda: (
                _poll(consumer, found)
                and all(consumer.position(each) >= end for each, end in ends.items())
            ),
        )
        return found


def _poll(consumer: KafkaConsumer, found: list[Any]) -> bool:
    for records in consumer.poll(timeout_ms=500).values():
        found.extend(records)
    return bool(consumer.assignment())


def events_of(stack: Endpoints, keyspace: str, *tables: str) -> list[Any]:
    """The records of the agent's topic so far that are events of these tables."""
    of_keyspace = f'"keyspace":"{keyspace}"'.encode()
    of_table = [f'"table":"{table}"'.encode() for table in tables]
    return [
        each
        for each in records_of(stack, stack.topic_prefix)
        if each.key and each.value and of_keyspace in each.value
        if any(table in each.value for table in of_table)
    ]


def publish(stack: Endpoints, topic: str, records: Iterable[KeyAndValue]) -> None:
    """Publish keys and values; returns when Kafka has them."""
    with closing(
        KafkaProducer(bootstrap_servers=stack.bootstrap_servers, max_request_size=LARGEST)
    ) as producer:
        for each in [producer.send(topic, key=key, value=value) for key, value in records]:
            each.get(timeout=PATIENCE)


def create_topics(stack: Endpoints, topics: Iterable[str]) -> None:
    """Topics of two partitions, for what no agent writes."""
    limits = {"max.message.bytes": str(LARGEST)}
    with closing(KafkaAdminClient(bootstrap_servers=stack.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(each, 2, 1, topic_configs=limits) for each in topics])


def as_captured(session: Session, keyspace: str) -> str:
    """As the stream names James's tables: memory of them goes on when it starts."""
    query = "SELECT table_name, id, WRITETIME(cdc) FROM system_schema.tables"
    rows = session.execute(f"{query} WHERE keyspace_name = %s", (keyspace,))
    told = (tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows)
    return text_of({table: f"{number}@{altered_at}" for table, number, altered_at in told})


def begin_at_the_end(session: Session, config: Path) -> None:
    """Let the first start of a stream go on after what other tests have written up to now.

    All keyspaces have one topic: the stream would else read what every test before it has left.
    What is written from now on is remembered as if it watched already. Our own keyspace has the
    copies of James's.
    """
    settings = load(config, {})
    store = Store(session, settings.cassandra.own_keyspace)
    upgrade(store, replication_of(session, settings.cassandra.keyspace))
    bookmarks = CassandraBookmarks(store)
    since = now_micros() - to_micros(settings.stream.delay)
    CassandraLineage(store).watch_from(since, as_captured(session, settings.cassandra.keyspace))
    topics = [settings.kafka.topic_prefix]
    with closing(Watcher(settings.kafka)) as watcher:
        if watcher.missing(topics):
            return
        ends, ids = flat(watcher.end_offsets(topics)), watcher.ids(topics)
    for mode in Mode:
        stream = StreamNames.of(settings, mode).bookmarks(settings.families()[0])
        bookmarks.record(Bookmark(stream, ends, ids))


def reconcile(
    *arguments: str, environment: Mapping[str, str] | None = None, patience: float = PATIENCE
) -> Answer:
    """Run `reconcile` to its end; ``patience`` (s) is there for hangs."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.app", *arguments],
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
        env=None if environment is None else dict(environment),
    )
