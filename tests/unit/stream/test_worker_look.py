"""Steps 3 and 4 in a worker: every key of its share is looked at once, however many there are."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from checkpoints.clock import HOUR, now_micros, to_micros
from checkpoints.expiries import Expiries
from checkpoints.lineage import Lineage
from checkpoints.tallies import Tallies
from reconcilers.declared.family import Family
from reconcilers.words.model import KeyValue, Kind, Micros, Slot, Wake
from streaming.again.dry import WRITES
from streaming.again.replay import DryReplayJob, ReplayJob
from streaming.commands.wiring import workers
from streaming.pipeline import worker
from streaming.pipeline.suspect_cap import Cap
from streaming.pipeline.worker import BatchLook, Connections, Job, look_task
from streaming.settings import Settings
from streaming.steps.look import Look, LookResult
from tests.builders.clocks import OneNode
from tests.builders.indexes import DELETED, INDEXED
from tests.builders.looks import SCHEMA, no_examiner
from tests.builders.permits import unpaused
from tests.builders.rows import FAMILY, MAILBOX, MESSAGE_ID, PROJECTION, SECOND, SLOT, row
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal, MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.refusing import Tables

AT_ONCE = 3
DELAY: Micros = 45 * SECOND
"""The settings' own."""


@dataclass
class Share:
    """One worker's share of a batch, over ports in memory; ``looks`` are the keys of each look."""

    tables: MemoryTables = field(default_factory=MemoryTables)
    expiries: MemoryExpiries = field(default_factory=MemoryExpiries)
    tallies: MemoryTallies = field(default_factory=MemoryTallies)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    looks: list[list[KeyValue | None]] = field(default_factory=list)
    family: Family = FAMILY
    job: type[Job] = Job

    def connect(self, _settings: Settings, _family: Family) -> Connections:
        return Connections(
            self.tables,
            self.lineage,
            MemoryJournal(),
            self.expiries,
            self.tallies,
            OneNode().watch(),
            unpaused(),
        )

    def look(
        self,
        *rows: dict[str, Any],
        at_once: int = 1,
        apart: frozenset[Slot] = frozenset(),
        cap: Cap | None = None,
    ) -> BatchLook:
        """Look at these keys, which come so many in an Arrow batch."""
        plain = {"mailboxid": str(MAILBOX), "messageid": str(MESSAGE_ID), "changes": 1}
        plain |= {"from_truth": False, "looked_again": False}
        keys = [plain | row for row in rows]
        batches = [
            pa.RecordBatch.from_pylist(keys[start : start + at_once], schema=SCHEMA)
            for start in range(0, len(keys), at_once)
        ]
        job = self.job(Settings(), self.family, "suspects", self.connect, no_examiner)
        (result,) = look_task(job, apart, cap)(batches)
        found = pickle.loads(result.to_pydict()["result"][0])
        assert isinstance(found, BatchLook)
        return found


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch) -> Share:
    made, at = Share(), Look.at

    def told(look: Look, wakes: Sequence[Wake], now: Micros) -> LookResult:
        made.looks.append([wake.key[1] for wake in wakes])
        return at(look, wakes, now)

    monkeypatch.setattr(worker, "KEYS_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(Look, "at", told)
    return made


def test_many_keys_are_looked_at_in_several_looks_each_once(share: Share) -> None:
    found = share.look(*({"uid": uid} for uid in range(1, 8)))
    assert share.looks == [[1, 2, 3], [4, 5, 6], [7]]
    assert found.examined == 7
    assert found.changes == {MAILBOX: 7}


def test_a_share_that_ends_with_a_full_look_has_no_empty_one(share: Share) -> None:
    share.look(*({"uid": uid} for uid in range(1, 2 * AT_ONCE + 1)))
    assert share.looks == [[1, 2, 3], [4, 5, 6]]


def test_an_arrow_batch_is_looked_at_as_a_whole(share: Share) -> None:
    share.look(*({"uid": uid} for uid in range(1, 6)), at_once=5)
    assert share.looks == [[1, 2, 3, 4, 5]]


def test_a_share_without_keys_asks_nothing(share: Share) -> None:
    assert share.look() == BatchLook()
    assert share.looks == []


def test_the_chunks_of_what_changed_are_marked(share: Share) -> None:
    share.look({"uid": 7}, {"uid": 2_500})
    assert share.tallies.of_mailbox(MAILBOX).chunks.keys() == {0, 2}


def test_what_is_stored_has_the_time_of_the_driver_whatever_the_worker_s_clock(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look whose time has passed already would never be made."""
    began = now_micros()

    def behind() -> Micros:
        return began if inspect.stack()[1].function == "look_task" else began - HOUR

    monkeypatch.setattr(worker, "now_micros", behind)
    share.family, share.tables = INDEXED, Tables(unreadable=frozenset({DELETED.table}))
    share.look({"uid": 7})
    assert share.tallies.of_mailbox(MAILBOX).chunks[0].marked_at == began
    assert [each.due > began for each in share.expiries.between(0, 2**62)] == [True]


def test_what_is_known_to_be_unreadable_is_not_looked_at_but_counted(share: Share) -> None:
    found = share.look({"uid": 7}, {"uid": 2_500}, apart=frozenset({Slot(MAILBOX, 7)}))
    assert share.looks == [[2_500]]
    assert found.changes == {MAILBOX: 2}
    assert share.tallies.of_mailbox(MAILBOX).chunks.keys() == {0, 2}


@pytest.mark.parametrize(("ahead", "fast"), [(DELAY // 2, 0), (DELAY // 2 + 1, 1)])
def test_writers_ahead_by_more_than_half_the_delay_are_counted(
    share: Share, ahead: Micros, fast: int
) -> None:
    found = share.look({"uid": 7, "oldest": 5, "quickest": -ahead})
    assert found.times.fast_writers == fast
    assert found.times.oldest == 5


@pytest.mark.parametrize(("margin", "expected"), [(-5 * SECOND, 0), (5 * SECOND, 1)])
def test_a_cell_that_expires_is_looked_at_after_that_unless_it_is_long_gone(
    share: Share, margin: Micros, expected: int
) -> None:
    """Gone for longer than a delay: a node's clock may be behind ours by less."""
    expires = now_micros() - DELAY + margin
    share.look({"uid": 7, "expires_at": expires})
    dues = [each.due for each in share.expiries.between(0, 2**62)]
    assert dues == [expires + 2 * DELAY] * expected


@pytest.mark.parametrize("refusing", [frozenset[str](), frozenset({DELETED.table})])
def test_where_an_index_may_not_be_read_it_is_looked_at_later(
    share: Share, refusing: frozenset[str]
) -> None:
    share.family, share.tables = INDEXED, Tables(unreadable=refusing)
    every = to_micros(Settings().repair.recheck_interval)
    began = now_micros()
    share.look({"uid": 7})
    later = list(share.expiries.between(0, 2**62))
    assert [(each.slot, each.source) for each in later] == [(SLOT, None)] * len(refusing)
    assert all(began + every < each.due <= now_micros() + 2 * every for each in later)


@pytest.mark.parametrize(("job", "published"), [(ReplayJob, 1), (DryReplayJob, 0)])
def test_a_delete_that_is_looked_at_again_is_not_handed_over_by_a_dry_replay(
    share: Share, monkeypatch: pytest.MonkeyPatch, job: type[Job], published: int
) -> None:
    """Of a row whose message nobody remembers: the look itself publishes its key."""
    told: list[Wake] = []
    monkeypatch.setattr(worker, "publish_wakes", lambda *of: told.extend(of[-1]))
    share.job = job
    deleted = {"deleted_from": FAMILY.listing.table, "deleted_at": now_micros()}
    share.look({"uid": 7, "messageid": None, **deleted})
    assert [each.slot for each in told] == [Slot(MAILBOX, 7)] * published


@pytest.mark.parametrize(("job", "kept"), [(ReplayJob, 1), (DryReplayJob, 0)])
def test_a_dry_replay_writes_nothing(share: Share, job: type[Job], kept: int) -> None:
    """A replay records the row's both sides, its delete, its chunk and its expiry."""
    share.job = job
    share.tables.rows[PROJECTION.name] = {Slot(MAILBOX, 7): row(uid=7)}
    share.look({"uid": 7, "expires_at": now_micros()})
    share.look({"uid": 8, "deleted_from": FAMILY.listing.table, "deleted_at": 5})
    deletes = share.lineage.projection_deletes(Slot(MAILBOX, 8))
    assert len(share.lineage.of_slots([Slot(MAILBOX, 7)])) == kept
    assert bool(deletes.received) is bool(kept)
    assert len(share.tallies.of_mailbox(MAILBOX).chunks) == kept
    assert len(list(share.expiries.between(0, 2**62))) == kept


@pytest.mark.parametrize("port", [Lineage, Expiries, Tallies])
def test_each_method_that_writes_is_known(port: type) -> None:
    """A method of a port writes if it returns nothing."""
    methods = {name: each for name, each in vars(port).items() if inspect.isfunction(each)}
    writes = {each for each in methods if methods[each].__annotations__.get("return") == "None"}
    assert writes <= WRITES


def test_a_job_is_sent_to_the_workers_with_functions_by_their_names() -> None:
    sent = workers.job(Settings(), FAMILY, "suspects")
    got = cloudpickle.loads(cloudpickle.dumps(sent))
    assert (got.connect, got.examiner) == (workers.connections, workers.examiner)
    assert got.settings == sent.settings


def test_an_event_of_a_row_that_collects_schedules_one_look_at_its_mailbox(share: Share) -> None:
    """Whatever an event says: a set's payload is the same for what is added and taken away."""
    share.family, share.tables.truths = INDEXED, {MESSAGE_ID: (row(),)}
    whole = INDEXED.whole_group(MAILBOX)
    found = share.look({"uid": whole.key[1], "messageid": None, "changes": 3})
    again = share.look({"uid": whole.key[1], "messageid": None})
    (due,) = set(share.expiries.between(0, 2 * now_micros()))
    assert (due.slot, due.source) == (whole, None)
    assert found.changes == again.changes == {}
    assert share.looks == [], "nothing is read yet"
    hour = now_micros() // HOUR
    assert not [*share.tallies.marked_in(hour - 1), *share.tallies.marked_in(hour)]


FEW = Cap(travel=4, ready=100)


@pytest.fixture
def published(share: Share, monkeypatch: pytest.MonkeyPatch) -> list[Wake]:
    """Rows of the listing that the truth does not have, and the keys that are published again."""
    share.tables.rows[FAMILY.listing.name] = {Slot(MAILBOX, uid): row() for uid in range(1, 11)}
    wakes: list[Wake] = []
    monkeypatch.setattr(Job, "publish", lambda _job, some: wakes.extend(some))
    return wakes


def test_beyond_the_most_keys_are_published_again_and_counted(
    share: Share, published: list[Wake]
) -> None:
    told, listing = [{"uid": uid} for uid in range(1, 11)], FAMILY.listing.name
    whole = share.look(*told)
    assert (len(whole.suspects), published, whole.left_out) == (10, [], [])
    some = share.look(*told, cap=FEW)
    assert (len(some.suspects), some.examined) == (4, 10)
    assert [each.new for each in some.left_out] == [{(listing, Kind.EXTRA_ROW): 6}]
    places = {wake.slot for wake in published} | {each.slot for each in some.suspects}
    assert places == {each.slot for each in whole.suspects}
    told_of = {(wake.looked_again, wake.projection, wake.suspected) for wake in published}
    assert told_of == {(True, listing, Kind.EXTRA_ROW)}


def test_what_is_beyond_the_most_is_a_change_in_flight_for_counters(
    share: Share, published: list[Wake]
) -> None:
    """Its row has no finding: a counter that believed the listing would be made wrong."""
    for again in ({}, {"looked_again": True, "projection": FAMILY.listing.name}):
        told = [{"uid": uid, **again} for uid in range(1, 11)]
        whole, some = share.look(*told), share.look(*told, cap=FEW)
        assert some.changes[MAILBOX] == whole.changes.get(MAILBOX, 0) + 6
    assert published


def test_what_comes_back_beyond_the_most_is_not_counted_again(
    share: Share, published: list[Wake]
) -> None:
    again = {"looked_again": True, "projection": FAMILY.listing.name}
    found = share.look(*({"uid": uid, **again} for uid in range(1, 11)), cap=FEW)
    assert (len(found.suspects), len(published)) == (4, 6)
    assert [each.new for each in found.left_out] == [{}]
    assert found.examined == 4


@pytest.mark.parametrize("again", [{}, {"looked_again": True, "projection": FAMILY.listing.name}])
def test_what_was_left_out_may_travel_after_all(
    share: Share, published: list[Wake], again: dict[str, object]
) -> None:
    told = [{"uid": uid, **again} for uid in range(1, 11)]
    whole, some = share.look(*told), share.look(*told, cap=FEW)
    some.take_left_out()
    assert {each.slot for each in some.suspects} == {each.slot for each in whole.suspects}
    assert (len(some.suspects), some.examined, some.left_out) == (10, 10, [])
    assert published
