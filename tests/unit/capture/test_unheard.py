"""Tables with user-defined types of which an agent drops all events: when that is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Offsets, Place
from checkpoints.clock import now_micros
from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.unheard import (
    DAY,
    MINUTE,
    SETTLED,
    RowWrite,
    TableHeard,
    comparable,
    of_user_types,
    timed_column,
)
from reconcilers.words.errors import Refused
from reconcilers.words.model import SECOND, Micros
from streaming.commands.doctor.checks.check import Level
from streaming.commands.doctor.checks.unheard import told
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.unheard import UnheardTables, UnheardWatch
from streaming.topics import Record
from tests.builders import attachments
from tests.builders.mailbox_family import MAILBOXES, SCHEMA
from tests.builders.rows import NOW
from tests.fakes.checked_cluster import JAMES

WRITTEN = NOW - 10 * MINUTE
HOUR = 60 * MINUTE


@dataclass
class World:
    """Rows of `mailbox`, and the events in the agents' topic."""

    rows: Mapping[str, Micros] = field(default_factory=lambda: {"a": WRITTEN, "b": WRITTEN})
    captured: Mapping[str, Micros] = field(default_factory=lambda: {"mailbox": NOW - DAY})
    events: list[Record] = field(default_factory=list)
    refuses: bool = False

    def captured_since(self) -> dict[str, Micros]:
        if self.refuses:
            raise Refused("no right to read it")
        return dict(self.captured)

    def sample(self, table: str, key: str, column: str) -> list[RowWrite]:
        assert (table, key, column) == ("mailbox", "id", "name")
        return [RowWrite(name, at) for name, at in self.rows.items()]

    def offsets_at(self, topics: Iterable[str], at: Micros) -> dict[Place, int]:
        assert min(self.rows.values()) - MINUTE < at < min(self.rows.values())
        return {(topic, 0): 1 for topic in topics}

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        return {topic: {0: len(self.events) + 1} for topic in topics}

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterable[Record]:
        return self.events[begin - 1 : end - 1]

    def came(
        self, key: str, at: Micros = WRITTEN, table: str = "mailbox", keyspace: str = "james"
    ) -> World:
        source = {"ts_us": at, "keyspace": keyspace, "table": table}
        told = json.dumps({"id": key}).encode(), json.dumps({"source": source}).encode()
        self.events.append(Record("events", 0, len(self.events) + 1, *told))
        return self

    def later(self) -> World:
        return self.came("x", WRITTEN + MINUTE + SECOND, "canary", "canaries")

    @property
    def tables(self) -> UnheardTables:
        return UnheardTables(self, self, "james", "events")

    def found(self) -> list[TableHeard]:
        return list(self.tables.compared([MAILBOXES], SCHEMA, NOW))


# --- which tables --------------------------------------------------------------------------------


def test_the_truths_with_user_defined_types_are_compared() -> None:
    families = [MESSAGE, ATTACHMENT, MAILBOXES]
    found = of_user_types(families, {**JAMES, **SCHEMA, **attachments.SCHEMA})
    assert found == {"messagev3": "messageid", "messagev2": "messageid", "mailbox": "id"}


@pytest.mark.parametrize(
    "type_", ["text", "set<text>", "frozen<list<int>>", "map<text, bigint>", "vector<float, 3>"]
)
def test_built_in_types_are_none_of_them(type_: str) -> None:
    assert of_user_types([MAILBOXES], {"mailbox": {"id": "timeuuid", "name": type_}}) == {}


def test_the_time_is_that_of_a_cell_that_has_one() -> None:
    assert timed_column(SCHEMA["mailbox"], "id") == "name"
    assert timed_column({"id": "uuid", "of": "frozen<x>", "tags": "set<text>"}, "id") is None


# --- which writes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "captured", "fits"),
    [
        (NOW - SETTLED - 1, 0, True),
        (NOW - SETTLED, 0, False),
        (NOW - DAY, 0, False),
        (NOW - DAY + 1, 0, True),
        (NOW - HOUR, NOW - HOUR - MINUTE, False),
        (NOW - HOUR + 1, NOW - HOUR - MINUTE, True),
    ],
)
def test_a_write_proves_something_if_its_event_must_have_come(
    at: Micros, captured: Micros, fits: bool
) -> None:
    assert bool(comparable([RowWrite("a", at)], captured, NOW)) is fits


def test_only_the_newest_minute_is_compared() -> None:
    writes = [RowWrite("old", WRITTEN - MINUTE), RowWrite("new", WRITTEN)]
    assert [each.key for each in comparable(writes, 0, NOW)] == ["new"]


# --- what is known -------------------------------------------------------------------------------


def test_writes_whose_events_have_come_are_heard() -> None:
    assert World().came("b").came("a").found() == [TableHeard("mailbox", 2, 0)]


def test_writes_without_events_are_told_once_later_events_have_come() -> None:
    assert World().came("a").found() == []
    assert World().came("a").later().found() == [TableHeard("mailbox", 2, 1)]
    assert World().later().found() == [TableHeard("mailbox", 2, 2)]


def test_events_of_other_tables_and_keyspaces_are_none_of_it() -> None:
    world = World().came("a", table="mailboxpathv3").came("a", keyspace="other")
    world.events.append(Record("events", 0, 3, b"{", b"no JSON"))
    world.events.append(Record("events", 0, 4, None, None))
    assert world.later().found() == [TableHeard("mailbox", 2, 2)]


@pytest.mark.parametrize(
    "world", [World(rows={}), World(rows={"a": NOW}), World(captured={})], ids=str
)
def test_without_a_write_or_capture_nothing_is_known(world: World) -> None:
    assert replace(world, events=[]).later().found() == []


# --- where it is told ----------------------------------------------------------------------------


def test_doctor_names_the_table_and_says_to_restart_the_agents() -> None:
    assert told(TableHeard("mailbox", 2, 0)).level is Level.OK
    problem = told(TableHeard("mailbox", 3, 2))
    assert problem.level is Level.PROBLEM
    assert problem.what.startswith("of 3 late writes to mailbox the events of 2 did not come")
    assert problem.advice.startswith("restart the agents")


def test_the_metric_is_one_while_events_do_not_come() -> None:
    metrics, at = Metrics(CollectorRegistry()), now_micros() - 10 * MINUTE
    world = World(rows={"a": at}, captured={"mailbox": at - DAY // 2})
    watch = UnheardWatch(world.tables, [MAILBOXES], SCHEMA, metrics)

    def shown() -> float | None:
        labels = {"table": "mailbox"}
        return metrics.registry.get_sample_value("reconciler_table_not_captured", labels)

    watch.measure()
    assert shown() is None
    world.came("x", at + 2 * MINUTE, "canary")
    watch.measure()
    assert shown() == 1
    world.refuses = True
    watch.measure()
    assert shown() == 1
    world.refuses = False
    world.came("a", at)
    watch.measure()
    assert shown() == 0
