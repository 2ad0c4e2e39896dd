"""Which of the events that are not settled `explain` tells of."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid1

import pytest

from checkpoints.bookmarks import Bookmark
from reconcilers.words.model import Slot
from streaming.commands.wiring import unsettled_events as unsettled
from streaming.commands.wiring.unsettled_events import UnsettledEvents, names
from streaming.topics import Record
from tests.builders.failing import unreachable

MAILBOX, MESSAGE = uuid1(), uuid1()
PLACE = Slot(MAILBOX, 12)


def event(table: str = "messageidtable", *, offset: int = 0, **cells: object) -> Record:
    told = ",".join(f'"{name}":{{"value":{value},"set":true}}' for name, value in cells.items())
    value = f'{{"source":{{"table":"{table}"}},"after":{{{told}}}}}'.encode()
    return Record("james", 0, offset, None, value)


def quoted(of: UUID) -> str:
    return f'"{of}"'


@pytest.mark.parametrize(
    ("cells", "meant"),
    [
        ({"mailboxid": quoted(MAILBOX), "uid": 12}, True),
        ({"messageid": quoted(MESSAGE)}, True),
        ({"mailboxid": quoted(MAILBOX), "uid": 123}, False),
        ({"mailboxid": quoted(MAILBOX), "uid": 112}, False),
        ({"mailboxid": quoted(uuid1()), "uid": 12}, False),
        ({"mailboxid": quoted(MAILBOX)}, False),
    ],
)
def test_an_event_of_the_place_or_of_its_message_is_meant(
    cells: dict[str, Any], *, meant: bool
) -> None:
    assert names(event(**cells), PLACE, [MESSAGE]) is meant
    assert not names(Record("james", 0, 0, None, None), PLACE, [MESSAGE])


class Tail:
    """A partition from its first offset to its end."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.read: list[tuple[int, int]] = []

    def beginning_offsets(self, _topics: object) -> dict[str, dict[int, int]]:
        return {"james": {0: self.begin}}

    def end_offsets(self, _topics: object) -> dict[str, dict[int, int]]:
        return {"james": {0: self.end}}

    def records(self, _topic: str, _number: int, begin: int, end: int) -> list[Record]:
        self.read.append((begin, end))
        return [event(messageid=quoted(MESSAGE), offset=each) for each in range(begin, end)]

    def close(self) -> None:
        """Nothing is open."""


def told(tail: Tail, settled: int) -> list[str]:
    made: Any = tail
    bookmark = Bookmark("s", {("james", 0): settled})
    return list(UnsettledEvents(lambda: made, ("james",), lambda: bookmark).of(PLACE, [MESSAGE]))


def test_only_what_is_not_settled_is_read() -> None:
    tail = Tail(0, 5)
    assert told(tail, 3) == [f"event james/0:{each} of messageidtable" for each in (3, 4)]
    assert tail.read == [(3, 5)]
    assert told(Tail(0, 5), 5) == []


def test_what_kafka_has_deleted_is_not_asked_for() -> None:
    tail = Tail(4, 5)
    assert len(told(tail, 1)) == 1
    assert tail.read == [(4, 5)]


def test_of_a_long_backlog_the_newest_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsettled, "MOST", 2)
    *events, note = told(Tail(0, 9), 1)
    assert len(events) == 2
    assert note == "of 8 events of james/0 the newest 2 were searched"


def test_where_kafka_does_not_answer_it_says_so() -> None:
    found = UnsettledEvents(unreachable, ("james",), lambda: None).of(PLACE, [])
    assert list(found) == ["whether Kafka has more of it is not known: no host answered"]
