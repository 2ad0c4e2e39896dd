"""A CQL server that answers prepared reads from memory: protocol version 4, one node.

It takes prepared updates, and forgets them.

It runs in a process of its own, so that what it spends is not the client's. A real driver connects
to it as to a cluster: it finds a node, tokens, keyspaces, and the columns of the tables.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from uuid import UUID

from tests.fakes.cql_tables import (
    FakeTable,
    Select,
    Update,
    option,
    partition_marks,
    select,
    update,
)

VERSION = 4
ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, REGISTER = (
    0x00, 0x01, 0x02, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B,
)  # fmt: skip
BATCH = 0x0D
PROTOCOL_ERROR, INVALID = 0x000A, 0x2200
VOID, ROWS, PREPARED = 1, 2, 4
ONE_TABLE, NO_NAMES = 0x1, 0x4
"""Flags of an answer's columns: all of one table; left out, for the client knows them."""
SKIP_NAMES = 0x02
"""Flag of a request: the client knows the columns."""
READ = re.compile(
    r"SELECT (.+?) FROM (\w+)\.(\w+)(?: WHERE (.+?))?( PER PARTITION LIMIT \?)?", re.IGNORECASE
)
UPDATE = re.compile(r"UPDATE (\w+)\.(\w+)( USING TIMESTAMP \?)? SET (.+) WHERE (.+)")
NODE = UUID(int=1)
PATIENCE = 60.0


class CannotAnswer(Exception):
    """Not a read that this server knows."""


class CqlServer:
    """What one server knows: its tables, and the statements prepared so far."""

    def __init__(self, tables: Iterable[FakeTable]) -> None:
        own = [*tables]
        self._tables = {(each.keyspace, each.name): each for each in (*own, *_system(own))}
        self._prepared: list[Select | Update | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client closes it."""
        try:
            while True:
                head = await reader.readexactly(9)
                version, _, stream, operation, length = struct.unpack(">BBhBI", head)
                body = await reader.readexactly(length)
                kind, answer = self._answer(version, operation, body)
                head = struct.pack(">BBhBI", 0x80 | VERSION, 0, stream, kind, len(answer))
                writer.write(head + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, version: int, operation: int, body: bytes) -> tuple[int, bytes]:
        if version != VERSION:
            why = f"Invalid or unsupported protocol version ({version}); only {VERSION}"
            return ERROR, struct.pack(">i", PROTOCOL_ERROR) + _string(why)
        if operation in NO_QUESTION:
            return NO_QUESTION[operation]
        answers = {
            QUERY: self._query,
            PREPARE: self._prepare,
            EXECUTE: self._execute,
            BATCH: self._take,
        }
        try:
            return RESULT, answers[operation](body)
        except CannotAnswer as why:
            return ERROR, struct.pack(">i", INVALID) + _string(str(why))

    def _take(self, _writes: bytes) -> bytes:
        return struct.pack(">i", VOID)

    def _query(self, body: bytes) -> bytes:
        cql = _long_string(body)
        read = self._read(cql)
        if read is None:
            raise CannotAnswer(f"unconfigured table or unknown condition: {cql}")
        return struct.pack(">i", ROWS) + _columns(read) + _rows(*read.answer(()))

    def _prepare(self, body: bytes) -> bytes:
        """Whatever it does not know is prepared too, and refused when it is executed."""
        cql = _long_string(body)
        read = self._read(cql) or self._update(cql)
        self._prepared.append(read)
        number = struct.pack(">HI", 4, len(self._prepared) - 1)
        if read is None:
            nothing = struct.pack(">iii", 0, 0, 0) + struct.pack(">ii", NO_NAMES, 0)
            return struct.pack(">i", PREPARED) + number + nothing
        marks, partition = read.marks, partition_marks(read)
        asked = struct.pack(">iii", ONE_TABLE, len(marks), len(partition))
        asked += b"".join(struct.pack(">H", place) for place in partition)
        asked += _string(read.table.keyspace) + _string(read.table.name)
        asked += b"".join(_string(name) + option(kind) for name, kind in marks)
        columns = _columns(read) if isinstance(read, Select) else struct.pack(">ii", NO_NAMES, 0)
        return struct.pack(">i", PREPARED) + number + asked + columns

    def _execute(self, body: bytes) -> bytes:
        (number,) = struct.unpack_from(">I", body, 2)
        read = self._prepared[number]
        if read is None:
            raise CannotAnswer("this server does not know this statement")
        if isinstance(read, Update):
            return struct.pack(">i", VOID)
        (flags,) = struct.unpack_from(">B", body, 8)
        rows = _rows(*read.answer(_values(body) if flags & 0x01 else ()))
        if flags & SKIP_NAMES:
            return struct.pack(">iii", ROWS, NO_NAMES, len(read.columns)) + rows
        return struct.pack(">i", ROWS) + _columns(read) + rows

    def _read(self, cql: str) -> Select | None:
        match = READ.fullmatch(cql.strip().rstrip(";"))
        if match is None:
            return None
        names, keyspace, table, where, limit = match.groups()
        found = self._tables.get((keyspace, table))
        if found is None and keyspace.startswith("system"):  # this server has no rows of it
            columns = ["nothing"] if names.strip() == "*" else names.split(", ")
            found = FakeTable(keyspace, table, dict.fromkeys(columns, "text"), ())
        return select(found, names, where, limit is not None) if found else None

    def _update(self, cql: str) -> Update | None:
        match = UPDATE.fullmatch(cql.strip())
        if match is None:
            return None
        keyspace, table, timed, cells, where = match.groups()
        found = self._tables.get((keyspace, table))
        return update(found, timed is not None, cells, where) if found else None


def _system(tables: Sequence[FakeTable]) -> list[FakeTable]:
    """What a driver asks of the server itself."""
    local: dict[str, tuple[str, object]] = {
        "key": ("text", "local"),
        "cluster_name": ("text", "fake"),
        "data_center": ("text", "datacenter1"),
        "rack": ("text", "rack1"),
        "host_id": ("uuid", NODE),
        "schema_version": ("uuid", NODE),
        "release_version": ("text", "5.0.9"),
        "partitioner": ("text", "org.apache.cassandra.dht.Murmur3Partitioner"),
        "tokens": ("set<text>", {"-4611686018427387904", "0", "4611686018427387904"}),
    }
    simple = {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"}
    names = {"keyspace_name": "text", "durable_writes": "boolean", "replication": "map<text, text>"}
    typed = dict.fromkeys(("keyspace_name", "table_name", "column_name", "type"), "text")
    node = {name: kind for name, (kind, _) in local.items()}
    return [
        FakeTable("system", "local", node, ("key",), [{n: v for n, (_, v) in local.items()}]),
        FakeTable("system_schema", "keyspaces", names, ("keyspace_name",)).holding(
            {"keyspace_name": each, "durable_writes": True, "replication": simple}
            for each in dict.fromkeys(table.keyspace for table in tables)
        ),
        FakeTable("system_schema", "columns", typed, ("keyspace_name",)).holding(
            dict(zip(typed, (each.keyspace, each.name, column, kind), strict=True))
            for each in tables
            for column, kind in each.columns.items()
            if "(" not in column
        ),
    ]


# --- the protocol's parts


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def _long_string(body: bytes) -> str:
    (length,) = struct.unpack_from(">I", body)
    return body[4 : 4 + length].decode()


def _columns(read: Select) -> bytes:
    kinds = read.table.columns
    names = b"".join(_string(name) + option(kinds[name]) for name in read.columns)
    flags = struct.pack(">ii", ONE_TABLE, len(read.columns))
    return flags + _string(read.table.keyspace) + _string(read.table.name) + names


def _rows(count: int, body: bytes) -> bytes:
    return struct.pack(">i", count) + body


def _values(body: bytes) -> tuple[bytes, ...]:
    """The values of an EXECUTE, each with its length before it."""
    (count,) = struct.unpack_from(">H", body, 9)
    found, place = [], 11
    for _ in range(count):
        (length,) = struct.unpack_from(">i", body, place)
        found.append(body[place : place + 4 + max(length, 0)])
        place += 4 + max(length, 0)
    return tuple(found)


_KNOWN = (("CQL_VERSION", ["3.4.7"]), ("COMPRESSION", list[str]()))
NO_QUESTION = {
    STARTUP: (READY, b""),
    REGISTER: (READY, b""),
    OPTIONS: (
        SUPPORTED,
        struct.pack(">H", len(_KNOWN))
        + b"".join(
            _string(name) + struct.pack(">H", len(values)) + b"".join(map(_string, values))
            for name, values in _KNOWN
        ),
    ),
}
"""What a client says before it asks anything, and the answers."""


# --- the process


async def _run(tables: Sequence[FakeTable], owner: Connection, host: str, port: int) -> None:
    """Serve until the owner closes the pipe, or ends."""
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(owner.fileno(), gone.set)
    server = await asyncio.start_server(CqlServer(tables).serve, host, port)
    owner.send(server.sockets[0].getsockname()[1])
    await gone.wait()


def _main(tables: Sequence[FakeTable], owner: Connection, host: str, port: int) -> None:
    asyncio.run(_run(tables, owner, host, port))


@contextmanager
def serving(tables: Sequence[FakeTable], host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A server of these tables in a process of its own; its port, a free one unless it is given.

    The rows are not kept here: they would be the caller's to collect.
    """
    spawning = multiprocessing.get_context("spawn")
    ours, its = spawning.Pipe()
    process = spawning.Process(target=partial(_main, tables, its, host, port), daemon=True)
    process.start()
    its.close()
    del tables
    try:
        assert ours.poll(PATIENCE), "the fake CQL server does not start"
        yield ours.recv()
    finally:
        ours.close()
        process.join(PATIENCE)
