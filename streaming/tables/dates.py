"""Timestamps as numbers, so that the driver can decode every date that a user can append.

The driver's own decoder makes a `datetime` of each timestamp. Beyond the years 1 to 9999 it fails;
the whole result is lost, and the connection is closed.
"""

from __future__ import annotations

import struct
from typing import Any

from cassandra.cluster import Session
from cassandra.cqltypes import DateType

from reconcilers.words.millis import Millis

_BITS = struct.Struct(">q")


class _Milliseconds(DateType):  # type: ignore[misc] # the driver has no types
    """Cassandra's timestamp as `Millis`. The driver does not register a type with this name."""

    @staticmethod
    def deserialize(bits: bytes, _protocol: int) -> Millis:
        (number,) = _BITS.unpack(bits)
        return Millis(number)

    @staticmethod
    def serialize(value: int, _protocol: int) -> bytes:
        return _BITS.pack(value)


def read_dates_as_numbers(session: Session) -> Session:
    """Make a session return `Millis` for each timestamp; returns the session."""
    handler = session.client_protocol_handler
    opcodes = handler.message_types_by_opcode
    results = _message(opcodes, "RESULT")
    codes = {code: _number(kind) for code, kind in results.type_codes.items()}
    decoding = type("_Results", (results,), {"type_codes": codes})
    told = {"message_types_by_opcode": {**opcodes, results.opcode: decoding}}
    session.client_protocol_handler = type("_DatesAsNumbers", (handler,), told)
    return session


def bind_dates_as_numbers(statement: Any) -> None:
    """Make a prepared statement take and return numbers for timestamps.

    The driver prepares with its own decoder, not the session's, and decodes with these types when
    the server does not send them again.
    """
    for names in ("column_metadata", "result_metadata"):
        columns = getattr(statement, names)
        if columns:
            setattr(statement, names, [_as_number(column) for column in columns])


def _as_number(column: Any) -> Any:
    """The driver's tuple of a column (keyspace, table, name, type) with the type replaced."""
    *place, kind = column
    changed = (*place, _number(kind))
    return column._make(changed) if hasattr(column, "_make") else changed


def _number(kind: Any) -> Any:
    return _Milliseconds if kind is DateType else kind


def _message(opcodes: dict[int, Any], name: str) -> Any:
    return next(each for each in opcodes.values() if each.name == name)
