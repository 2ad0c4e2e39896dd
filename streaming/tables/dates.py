"""Dates as numbers: whatever a user can append, the driver decodes it.

The driver's own decoder makes a `datetime` of each timestamp. It fails beyond the years 1 to 9999,
fails the whole result with it, and gives the connection up.
"""

from __future__ import annotations

import struct
from typing import Any

from cassandra.cluster import Session
from cassandra.cqltypes import DateType

from reconcilers.words.millis import Millis

_BITS = struct.Struct(">q")


class _Milliseconds(DateType):  # type: ignore[misc] # the driver has no types
    """Cassandra's timestamp as `Millis`. The driver registers no type with such a name."""

    @staticmethod
    def deserialize(bits: bytes, _protocol: int) -> Millis:
        (number,) = _BITS.unpack(bits)
        return Millis(number)

    @staticmethod
    def serialize(value: int, _protocol: int) -> bytes:
        return _BITS.pack(value)


def read_dates_as_numbers(session: Session) -> Session:
    """The same session, which gives `Millis` for each timestamp and takes integers for it."""
    handler = session.client_protocol_handler
    opcodes = handler.message_types_by_opcode
    results = _message(opcodes, "RESULT")
    codes = {code: _number(kind) for code, kind in results.type_codes.items()}
    decoding = type("_Results", (results,), {"type_codes": codes})
    told = {"message_types_by_opcode": {**opcodes, results.opcode: decoding}}
    session.client_protocol_handler = type("_DatesAsNumbers", (handler,), told)
    return session


def bind_dates_as_numbers(statement: Any) -> None:
    """Take and give numbers for the dates of a prepared statement.

    The driver prepares by its own decoder, whatever the session's, and reads by what it learned
    then where the server does not name the types again.
    """
    for names in ("column_metadata", "result_metadata"):
        columns = getattr(statement, names)
        if columns:
            setattr(statement, names, [_as_number(column) for column in columns])


def _as_number(column: Any) -> Any:
    """A column as the driver knows it: its keyspace, table, name and type."""
    *place, kind = column
    changed = (*place, _number(kind))
    return column._make(changed) if hasattr(column, "_make") else changed


def _number(kind: Any) -> Any:
    return _Milliseconds if kind is DateType else kind


def _message(opcodes: dict[int, Any], name: str) -> Any:
    return next(each for each in opcodes.values() if each.name == name)
