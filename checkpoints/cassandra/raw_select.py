"""Reads whose answers stay undecoded: bytes for each cell.

They use a session of their own on the caller's cluster, because a session decides the decoding. The
driver always requests the columns' types with each answer. They are compared with those of the
prepared statement, so a change of the schema is noticed first.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.cqltypes import BytesType
from cassandra.protocol import RESULT_KIND_ROWS, ProtocolHandler, ResultMessage
from cassandra.query import BoundStatement, tuple_factory

from checkpoints.cassandra.driver_errors import translated
from checkpoints.cassandra.replicas import (
    PARTITIONS_A_READ,
    Routed,
    by_first_replica,
)
from reconcilers.declared.raw import RawCell, RawKey, RawRow
from reconcilers.words.errors import Refused
from reconcilers.words.groups import in_groups

IN_FLIGHT = 8
ROWS_A_READ = 100
INT = struct.Struct(">i")
SAME_BYTES = {"timeuuid": "uuid", "varchar": "text", "ascii": "text", "set<varchar>": "set<text>"}
"""Types whose values are sent like those of another type."""


_Decoding: Any = ProtocolHandler.message_types_by_opcode[ResultMessage.opcode]


class _UndecodedResult(_Decoding):  # type: ignore[misc]
    """An answer parsed as if all columns were blobs; ``sent`` has the real types."""

    sent: Sequence[Any] = ()
    column_metadata: Any
    column_types: Any

    def recv_results_metadata(self, f: Any, user_type_map: Any) -> None:
        super().recv_results_metadata(f, user_type_map)
        if self.kind == RESULT_KIND_ROWS and self.column_metadata:
            self.sent = self.column_metadata
            self.column_metadata = _as_bytes(self.sent)

    def recv_results_rows(self, f: Any, version: int, types: Any, known: Any, policy: Any) -> None:
        self.sent = known or ()
        super().recv_results_rows(f, version, types, _as_bytes(self.sent), policy)
        self.column_types = [column[3] for column in self.sent]


class _Undecoding(ProtocolHandler):  # type: ignore[misc]
    message_types_by_opcode: ClassVar[dict[int, Any]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultMessage.opcode: _UndecodedResult,
    }


def _as_bytes(columns: Iterable[Any]) -> list[Any]:
    return [(*column[:3], BytesType) for column in columns]


class RawReads:
    """A second session on a session's cluster, created when first needed; both close together.

    ``connected`` is called with it then.
    """

    def __init__(
        self,
        session: Session,
        consistency: int,
        partitions_a_read: int = PARTITIONS_A_READ,
        connected: Callable[[Session], object] = bool,
    ) -> None:
        self._beside, self._consistency = session, consistency
        self.partitions_a_read, self._connected = partitions_a_read, connected

    def select(self, cql: str) -> RawSelect:
        """A read by this CQL."""
        return RawSelect(self, cql)

    @cached_property
    def session(self) -> Session:
        """The session, connected at the first use. Raises the errors of `translated`."""
        with translated("connecting for undecoded reads"):
            made = self._beside.cluster.connect()
        made.client_protocol_handler = _Undecoding
        self._connected(made)
        return made

    @cached_property
    def profile(self) -> Any:
        """The execution profile of the reads."""
        return self.session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory, consistency_level=self._consistency
        )


class RawSelect:
    """One SELECT whose last marker is a list, prepared when it is first needed.

    The driver renews a statement's metadata; ``types`` are those of the first preparation. Each
    method raises `Refused` if the server refuses or a read cannot stay undecoded, and
    `reconcilers.words.errors.Retryable`.
    """

    def __init__(self, reads: RawReads, cql: str) -> None:
        self._reads, self._cql = reads, cql
        self._statement: Any = None
        self._types: list[Any] = []

    @property
    def types(self) -> tuple[str, ...]:
        """The full types of its columns; a user-defined type includes its fields."""
        self._prepared()
        return _named(self._types)

    def require(self, *types: str) -> None:
        """Raise `Refused` unless the first columns have these CQL types, or ones sent alike."""
        found = tuple(self.type_at(at) for at in range(len(types)))
        if found != types:
            raise Refused(f"{self._cql}: columns of types {', '.join(found)}")

    def type_at(self, at: int) -> str:
        """The CQL type in whose form a column's cells are sent."""
        self._prepared()
        name: str = self._types[at].cql_parameterized_type()
        return SAME_BYTES.get(name, name)

    def forget(self) -> None:
        """Prepare the statement again at the next use."""
        self._statement = None

    def decoded(self, at: int, cell: RawCell) -> Any:
        """The driver's value of a cell in this column."""
        statement = self._prepared()
        return self._types[at].from_binary(cell, statement.protocol_version)

    def by_key(self, keys: Iterable[RawKey]) -> Iterator[list[RawRow]]:
        """The rows at these keys, by answer; a read has keys that differ in their last part."""
        together: dict[RawKey, list[RawCell]] = defaultdict(list)
        for key in keys:
            together[key[:-1]].append(key[-1])
        return self._answers(
            (near, [*leading, as_list(some)])
            for leading, lasts in together.items()
            for some, near in (self._rows_of(lasts) if leading else self._partitions(lasts))
        )

    def pages(self, values: Sequence[RawCell], rows: int) -> Iterator[list[RawRow]]:
        """The rows for these markers, ``rows`` a page; the next page is requested ahead."""
        bound = BoundStatement(self._prepared(), fetch_size=rows)
        bound.values = list(values)
        with translated("reading undecoded rows"):
            sent = self._reads.session.execute_async(bound, execution_profile=self._reads.profile)
            while True:
                page = sent.result()
                self._refuse_other(page)
                found: list[RawRow] = page.current_rows
                if not sent.has_more_pages:
                    yield found
                    return
                sent.start_fetching_next_page()
                yield found

    def _rows_of(self, keys: Sequence[RawCell]) -> Iterator[tuple[Sequence[RawCell], None]]:
        """Keys of rows of one partition, for each read."""
        yield from ((some, None) for some in in_groups(keys, ROWS_A_READ))

    def _partitions(
        self, keys: Sequence[RawCell]
    ) -> Iterator[tuple[Sequence[RawCell], bytes | None]]:
        """Keys of partitions for each read, and a partition to whose replicas it is sent."""
        reads = self._reads
        known = [each for each in keys if each is not None]
        most = reads.partitions_a_read
        return by_first_replica(reads.session, self._prepared(), known, most, bytes)

    def _answers(
        self, arguments: Iterator[tuple[bytes | None, list[RawCell]]]
    ) -> Iterator[list[RawRow]]:
        with translated("reading undecoded rows"):
            flying = [self._send(*each) for each in islice(arguments, IN_FLIGHT)]
            while flying:
                rows = self._rows(flying.pop(0).result())
                flying.extend(self._send(*each) for each in islice(arguments, 1))
                yield rows

    def _rows(self, answer: Any) -> list[RawRow]:
        if answer.has_more_pages:
            raise Refused(f"{self._cql}: there are too many rows")
        self._refuse_other(answer)
        rows: list[RawRow] = answer.current_rows
        return rows

    def _refuse_other(self, answer: Any) -> None:
        if _named(answer.column_types) != self.types:
            self.forget()
            raise Refused(f"{self._cql}: the columns have changed")

    def _send(self, near: bytes | None, values: list[RawCell]) -> Any:
        bound = Routed(self._prepared(), near)
        bound.values = values
        return self._reads.session.execute_async(bound, execution_profile=self._reads.profile)

    def _prepared(self) -> Any:
        if self._statement is None:
            with translated("preparing a read of undecoded rows"):
                statement = self._reads.session.prepare(self._cql)
            statement.is_idempotent = True
            self._types = [column[3] for column in statement.result_metadata]
            self._statement = statement
        return self._statement


def _named(types: Iterable[Any]) -> tuple[str, ...]:
    return tuple([each.cass_parameterized_type() for each in types])


def as_list(parts: Sequence[RawCell]) -> bytes:
    """The bytes of a list with these cells."""
    cells = [INT.pack(len(part)) + part for part in parts if part is not None]
    return INT.pack(len(cells)) + b"".join(cells)
