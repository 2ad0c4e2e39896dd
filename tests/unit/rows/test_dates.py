"""Whatever date a user can append, the driver decodes it: as a number, with its neighbours."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import DriverException
from cassandra.cluster import Session
from cassandra.cqltypes import DateType
from cassandra.protocol import ColumnMetadata, ProtocolHandler
from cassandra.query import PreparedStatement

from reconcilers.words.millis import Millis
from streaming.tables.dates import read_dates_as_numbers
from streaming.tables.statement_cache import StatementCache

ROWS, RESULT, TIMESTAMP, VERSION = 2, 0x08, 0x000B, 4
YEAR_10000, YEAR_0, PLAIN = 253_402_343_999_000, -62_135_769_600_000, 1_795_255_200_123
BEYOND = [YEAR_10000, YEAR_0, 2**63 - 1, -(2**63)]


def answer(*dates: int | None) -> bytes:
    """The body of a server's answer: one column of type timestamp, one row a date."""
    names = b"".join(struct.pack(">H", len(each)) + each for each in (b"mail", b"t", b"saved"))
    told = struct.pack(">iii", ROWS, 1, 1) + names + struct.pack(">H", TIMESTAMP)
    cells = (
        struct.pack(">i", -1) if date is None else struct.pack(">iq", 8, date) for date in dates
    )
    return told + struct.pack(">i", len(dates)) + b"".join(cells)


def decoded(handler: Any, *dates: int | None) -> list[object]:
    message = handler.decode_message(VERSION, {}, 1, 0, RESULT, answer(*dates), None, [])
    return [value for (value,) in message.parsed_rows]


@pytest.fixture
def ours() -> Any:
    session = Session.__new__(Session)
    return read_dates_as_numbers(session).client_protocol_handler


@pytest.mark.parametrize("date", BEYOND)
def test_the_drivers_own_decoder_fails_the_whole_answer(date: int) -> None:
    with pytest.raises((DriverException, OverflowError)):
        decoded(ProtocolHandler, PLAIN, date)


@pytest.mark.parametrize("date", BEYOND)
def test_ours_reads_it_and_its_neighbours(ours: Any, date: int) -> None:
    found = decoded(ours, PLAIN, date, None)
    assert found == [PLAIN, date, None]
    assert [type(each) for each in found[:2]] == [Millis, Millis]


@pytest.mark.parametrize("date", [PLAIN, Millis(YEAR_10000)])
def test_what_was_read_can_be_written(ours: Any, date: int) -> None:
    kind = ours.message_types_by_opcode[RESULT].type_codes[TIMESTAMP]
    assert kind.to_binary(date, VERSION) == struct.pack(">q", date)
    assert kind.cql_parameterized_type() == "timestamp"


def test_a_prepared_statement_takes_and_gives_numbers(ours: Any) -> None:
    """The driver prepares by its own decoder, whatever the session's."""
    column = ColumnMetadata("mail", "t", "saved", DateType)
    known = [tuple(column)]
    plain = PreparedStatement([column], b"1", None, "", "mail", VERSION, known, None)
    with pytest.raises(TypeError):
        plain.bind([Millis(YEAR_10000)])

    cache = StatementCache(SimpleNamespace(prepare=lambda _: plain))
    statement = cache.prepared("UPDATE mail.t SET saved = ?")
    bound = statement.bind([Millis(YEAR_10000)])
    assert bound.values == [struct.pack(">q", YEAR_10000)]
    untyped = struct.pack(">iii", ROWS, 4, 1) + struct.pack(">iiq", 1, 8, YEAR_10000)
    told = ours.decode_message(VERSION, {}, 1, 0, RESULT, untyped, None, statement.result_metadata)
    assert told.parsed_rows == [(YEAR_10000,)]


def test_other_sessions_keep_the_drivers_own(ours: Any) -> None:
    (plain,) = decoded(ProtocolHandler, PLAIN)
    assert not isinstance(plain, int)
    assert ours is not ProtocolHandler


def test_a_date_s_own_zone_counts_and_without_one_it_is_in_utc() -> None:
    later = timezone(timedelta(hours=2))
    assert Millis.of(datetime(1970, 1, 1, 2, 0, 1, tzinfo=later)) == Millis(1_000)
    assert Millis.of(datetime.fromisoformat("1970-01-01T00:00:01")) == Millis(1_000)
    assert str(Millis(1_000)) == "1970-01-01T00:00:01"
