"""Reads whose answers stay as they were sent: bytes for each cell, nothing decoded.

They have a session of their own, on the caller's cluster: what decodes is a session's. The columns'
types come with each answer (this driver never asks the server to leave them out), and are compared
with those that were prepared: so a change of the schema is seen before anything is compared.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.cqltypes import BytesType
from cassandra.protocol import RESULT_KIND_ROWS, ProtocolHandler, ResultMessage
from cassandra.query import BoundStatement, tuple_factory

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.raw import RawCell, RawKey, RawRow
from reconcilers.words.errors import Refused

IN_FLIGHT = 8
KEYS_PER_READ = 100
INT = struct.Struct(">i")
SAME_BYTES = {"timeuuid": "uuid", "varchar": "text", "ascii": "text", "set<varchar>": "set<text>"}
"""Types that are sent as another type is."""


_Decoding: Any = ProtocolHandler.message_types_by_opcode[ResultMessage.opcode]


class _UndecodedResult(_Decoding):  # type: ignore[misc]
    """An answer whose rows are parsed as if all columns were of bytes; it tells the real types."""

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
    """A second session on a session's cluster, made when it is first needed; both close together.

    ``consistency`` is that of each read.
    """

    def __init__(self, session: Session, consistency: int) -> None:
        self._beside, self._consistency = session, consistency

    def select(self, cql: str) -> RawSelect:
        """One read."""
        return RawSelect(self, cql)

    @cached_property
    def session(self) -> Session:
        """The session. Raises as `translated` does."""
        with translated("connecting for undecoded reads"):
            made = self._beside.cluster.connect()
        made.client_protocol_handler = _Undecoding
        return made

    @cached_property
    def profile(self) -> Any:
        """How its reads are executed."""
        return self.session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory, consistency_level=self._consistency
        )


class RawSelect:
    """One SELECT whose last marker is a list. Prepared when it is first needed, not at once.

    The driver renews what it keeps with a statement; the types are those of the first time.

    Each method raises `Refused` when the server does, or when a read cannot be left undecoded, and
    `reconcilers.words.errors.Retryable`.
    """

    def __init__(self, reads: RawReads, cql: str) -> None:
        self._reads, self._cql = reads, cql
        self._statement: Any = None
        self._types: list[Any] = []

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its columns, whole: a user's type with its fields."""
        self._prepared()
        return _named(self._types)

    def require(self, *types: str) -> None:
        """Raise `Refused` unless its first columns are of these CQL types, or sent alike."""
        found = tuple(self.type_at(at) for at in range(len(types)))
        if found != types:
            raise Refused(f"{self._cql}: columns of types {', '.join(found)}")

    def type_at(self, at: int) -> str:
        """The CQL type that a column's cells are sent as."""
        self._prepared()
        name: str = self._types[at].cql_parameterized_type()
        return SAME_BYTES.get(name, name)

    def forget(self) -> None:
        """Prepare it anew the next time."""
        self._statement = None

    def decoded(self, at: int, cell: RawCell) -> Any:
        """What the driver makes of a cell in this column."""
        statement = self._prepared()
        return self._types[at].from_binary(cell, statement.protocol_version)

    def by_key(self, keys: Iterable[RawKey]) -> Iterator[list[RawRow]]:
        """The rows at these keys, whose last parts are listed together, answer by answer."""
        together: dict[RawKey, list[RawCell]] = defaultdict(list)
        for key in keys:
            together[key[:-1]].append(key[-1])
        return self._answers(
            [*leading, as_list(some)]
            for leading, lasts in together.items()
            for some in _chunks(lasts)
        )

    def pages(self, values: Sequence[RawCell], rows: int) -> Iterator[list[RawRow]]:
        """What it finds for these markers, so many rows at a time; the next page is on its way."""
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

    def _answers(self, arguments: Iterator[list[RawCell]]) -> Iterator[list[RawRow]]:
        with translated("reading undecoded rows"):
            flying = [self._send(each) for each in islice(arguments, IN_FLIGHT)]
            while flying:
                rows = self._rows(flying.pop(0).result())
                flying.extend(self._send(each) for each in islice(arguments, 1))
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

    def _send(self, values: list[RawCell]) -> Any:
        bound = BoundStatement(self._prepared())
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
    """Cells as a list of them is sent."""
    cells = [INT.pack(len(part)) + part for part in parts if part is not None]
    return INT.pack(len(cells)) + b"".join(cells)


def _chunks(items: Sequence[RawCell]) -> Iterator[Sequence[RawCell]]:
    for start in range(0, len(items), KEYS_PER_READ):
        yield items[start : start + KEYS_PER_READ]
