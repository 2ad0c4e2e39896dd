"""What the glance passes, the look would have passed: over raw bytes, memory and wakes.

The worlds are right to begin with, and then some of it is changed, in every way that a condition of
the glance is about. `tests.fakes.raw_tables` gives the glance bytes, and the look what the driver
makes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.declared.family import Family, Projection, Schema
from reconcilers.declared.raw import RawRow
from reconcilers.rows.glance import can_expect, scanned
from reconcilers.rows.memory import Entry
from reconcilers.words.model import KeyValue, Kind, Micros, Slot, Wake
from streaming.steps.look import Look, LookResult
from tests.builders import indexes, rights, rows
from tests.builders.glances import WakesGlance, glance_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.raw_tables import (
    RawCells,
    RawMemoryLineage,
    RawMemoryTables,
    encoded,
    raw_key,
)

SINCE: Micros = 1_700_000_000_000_000
NOW = SINCE + 1_000_000
IDS = [UUID(f"{number}{number:07}-0000-1000-8000-00000000000{number}") for number in range(1, 5)]
PARTS: dict[str, list[KeyValue]] = {
    "timeuuid": [*IDS[:2]],
    "bigint": [1, 2],
    "text": ["a", "$b"],
}
CELLS: dict[str, list[bytes | None]] = {
    "bigint": [bytes(7) + b"\x01", bytes(8), b"\xff" * 8, b"", None],
    "boolean": [b"\x01", b"\0", b"", None],
    "int": [b"\0\0\0\x01", bytes(4), b"", None],
    "set<text>": [encoded("set<text>", frozenset("a")), bytes(4), None, b""],
    "text": [b"x", b"", None, b"$y"],
    "timestamp": [bytes(7) + b"\x09", bytes(8), b"", None],
    "timeuuid": [IDS[0].bytes, IDS[1].bytes, b"", None],
}
"""The first of each is complete."""
FAMILIES: dict[str, tuple[Family, Schema]] = {
    "messages": (rows.FAMILY, rows.SCHEMA),
    "with indexes": (indexes.INDEXED, indexes.INDEX_SCHEMA),
    "rights": (rights.RIGHTS, rights.SCHEMA),
}
OFTEN = 250


class Written(MemoryLineage):
    """Says whether anything was written."""

    writes = 0

    def _keep(self, entry: Entry) -> None:
        self.writes += 1
        super()._keep(entry)

    def remember_deletes(self, deletes: object) -> None:
        self.writes += 1
        super().remember_deletes(deletes)  # type: ignore[arg-type]


@dataclass
class World:
    """The tables of a family, what is remembered, and the wakes."""

    family: Family
    schema: Schema
    tables: RawMemoryTables = field(init=False)
    lineage: Written = field(default_factory=Written)
    wakes: list[Wake] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = RawMemoryTables(self.family, self.schema)

    def add(self, slot: Slot, source: KeyValue, cells: RawCells) -> None:
        """A slot that is right in every table."""
        family, truth = self.family, self.family.truth
        key = raw_key(family.key, slot.key)
        (named,) = raw_key((truth.source,), (source,))
        whole = cells | dict(zip(truth.slot, key, strict=True)) | {truth.source.name: named}
        self.rows(truth.table).append(whole)
        listed = {column: whole[column] for column in family.listing.columns}
        self.rows(family.listing.table).append(
            listed | dict(zip(family.listing.key, key, strict=True))
        )
        for index in family.projections[1:]:
            if self.belongs(index, whole):
                self.add_to(index, dict(zip(index.key, key, strict=False)), whole)

    def add_to(self, index: Projection, key: RawCells, truth: RawCells) -> None:
        """A row of its own; or to the row of its group."""
        rows, column = self.rows(index.table), index.collects
        if column is None:
            rows.append(key)
            return
        row = next((each for each in rows if key.items() <= each.items()), None)
        if row is None:
            rows.append(row := dict(key))
        row[column] = row.get(column) or truth[column]

    def belongs(self, index: Projection, cells: RawCells) -> bool:
        return index.belongs(self.tables._row(self.family.truth.table, cells))

    def rows(self, table: str) -> list[RawCells]:
        return self.tables.rows.setdefault(table, [])

    def look(self, wakes: Sequence[Wake], lineage: MemoryLineage) -> LookResult:
        return Look(self.family, self.tables.as_looked_at(), lineage, SINCE).at(wakes, NOW)

    def raw(self, table: str) -> list[RawRow]:
        """The rows of the truth or the listing, as they are scanned."""
        shape = self.tables.shape
        columns = shape.truth if table == self.family.truth.table else shape.listing
        return [tuple(row.get(name) for name in columns) for row in self.rows(table)]

    def wake_of(self, truth: RawRow) -> Wake:
        """A row of the truth, as a scan has a look at it."""
        shape = self.tables.shape
        row = self.tables._row(self.family.truth.table, dict(zip(shape.truth, truth, strict=True)))
        source: Any = row.get(self.family.truth.source.name)
        return Wake(self.family.truth.slot_of(row).key, source, changes=0)

    def read_ahead(self) -> list[RawRow]:
        """The rows of the truth that say what those of the listing expect."""
        glance = self.glance().glance
        expected = glance.of_listing(self.raw(self.family.listing.table), SINCE)
        told = glance.of_truth(self.raw(self.family.truth.table))
        return [truth for truth, said in told if said in expected]

    def glance(self) -> WakesGlance:
        memory = RawMemoryLineage(self.family, self.lineage)
        return glance_of(self.family, self.tables, memory)


@st.composite
def worlds(draw: st.DrawFn, name: str, unknown: int = 1) -> World:
    """A family's tables; of more rows nothing is remembered the higher ``unknown`` is."""
    world = World(*FAMILIES[name])
    family, truth = world.family, world.family.truth
    pools = [PARTS[column.type] for column in family.key]
    places = st.tuples(*map(st.sampled_from, pools))
    for key in draw(st.lists(places, min_size=1, max_size=3, unique=True)):
        slot = Slot(*key)
        source = source_at(family, slot, draw(st.sampled_from(IDS)))
        cells: RawCells = {
            column: draw(
                st.sampled_from(CELLS[kind][:1] * (20 * (column in truth.required)) + CELLS[kind])
            )
            for column, kind in world.schema[truth.table].items()
        }
        world.add(slot, source, cells)
        remember(draw, world, slot, source, unknown)
        world.wakes += draw(changes_of(slot, source))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        disturb(draw, world)
    for index in (each for each in family.projections if each.collects is not None):
        column = str(index.collects)
        for row in world.rows(index.table):  # one slot of many: the others rarely come to it
            row[column] = draw(st.sampled_from([row.get(column)] * 4 + CELLS["set<text>"]))
    world.wakes += draw(st.one_of(st.just([]), st.lists(others(world), max_size=2)))
    world.wakes = draw(st.permutations(world.wakes))
    return world


def source_at(family: Family, slot: Slot, source: KeyValue) -> KeyValue:
    """Where a key holds the source, it is that."""
    names = family.truth.slot
    at = names.index(family.truth.source.name) if family.truth.source.name in names else None
    return source if at is None else slot.key[at]


def remember(draw: st.DrawFn, world: World, slot: Slot, source: KeyValue, unknown: int) -> None:
    right = Entry(source, slot, in_truth=True, recorded_at=SINCE)
    wrong = (
        replace(right, in_truth=False),
        replace(right, recorded_at=None),
        replace(right, recorded_at=SINCE - 1),
        replace(right, expiring=True),
        replace(right, source=IDS[3]),
    )
    of = draw(
        st.sampled_from(
            [(right,)] * 20 + [(), *((each,) for each in wrong)] * unknown + [(right, wrong[4])]
        )
    )
    for entry in of:
        world.lineage._keep(entry)


def changes_of(slot: Slot, source: KeyValue) -> st.SearchStrategy[list[Wake]]:
    change = st.builds(
        Wake,
        st.just(slot.key),
        st.sampled_from([source] * 6 + [None] * 5 + [IDS[2]]),
        oldest=st.sampled_from([None, SINCE]),
        from_truth=st.booleans(),
        changes=st.integers(0, 2),
    )
    return st.lists(change, min_size=1, max_size=2)


def others(world: World) -> st.SearchStrategy[Wake]:
    """Wakes that tell of more, or name less."""
    family = world.family
    names = (family.truth.table, family.listing.table)
    key = st.tuples(*(st.sampled_from([*PARTS[each.type], None]) for each in family.key))
    projections = st.sampled_from([each.name for each in family.projections])
    there = st.sampled_from([wake.key for wake in world.wakes])
    a_key, a_source = st.one_of(there, key), st.sampled_from([*IDS, None])
    delete = st.builds(
        Wake, a_key, a_source, deleted_from=st.sampled_from(names), deleted_at=st.just(SINCE)
    )
    again = st.builds(
        Wake, a_key, a_source, looked_again=st.just(True), projection=projections,
        suspected=st.sampled_from([None, Kind.EXTRA_ROW]),
    )  # fmt: skip
    return st.one_of(delete, again, st.builds(Wake, a_key, a_source))


def disturb(draw: st.DrawFn, world: World) -> None:
    """Change, remove or add a row of some table."""
    family, truth = world.family, world.family.truth
    tables = [truth.table, truth.table, *(each.table for each in family.projections)]
    table = draw(st.sampled_from(tables))
    found, types = world.rows(table), world.schema[table]
    keys = {truth.table: {*truth.slot, truth.source.name}}
    keys |= {each.table: set(each.key) for each in family.projections}
    fixed = sorted(keys[table])
    choice = draw(st.sampled_from(["cell", "cell", "gone", "copy"]))
    if not found:
        found.append({each: encoded(types[each], PARTS[types[each]][0]) for each in fixed})
        return
    row = draw(st.sampled_from(found))
    column = draw(st.sampled_from(sorted(types)))
    if choice == "gone":
        found.remove(row)
    elif choice == "cell" and column not in fixed:
        row[column] = draw(st.sampled_from(CELLS[types[column]]))
    elif choice == "copy":
        part = draw(st.sampled_from(fixed))
        value = encoded(types[part], draw(st.sampled_from([*PARTS[types[part]], *IDS][:2])))
        copy = row | {part: value}
        if not any(all(each[name] == copy[name] for name in fixed) for each in found):
            found.append(copy)


def plain(counted: Counter[KeyValue]) -> dict[KeyValue, int]:
    return {group: number for group, number in counted.items() if number}


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data())
@settings(max_examples=OFTEN)
def test_what_the_glance_passes_the_look_would_have_passed(name: str, data: st.DataObject) -> None:
    world = data.draw(worlds(name))
    glanced = world.glance().at(world.wakes, SINCE)
    left = {id(wake) for wake in glanced.left}
    passed = [wake for wake in world.wakes if id(wake) not in left]
    world.lineage.writes = 0
    looked = world.look(passed, world.lineage)
    assert (looked.suspects, looked.again, looked.later) == ((), (), ())
    assert world.lineage.writes == 0
    assert looked.changes == glanced.changes
    assert set(looked.touched) == set(glanced.touched)
    assert looked.examined == glanced.examined

    # and with the others: the same as if nobody had glanced
    apart, together = deepcopy(world.lineage), deepcopy(world.lineage)
    rest, whole = world.look(glanced.left, apart), world.look(world.wakes, together)
    assert set(rest.suspects) == set(whole.suspects)
    assert (rest.again, rest.unresolved) == (whole.again, whole.unresolved)
    assert apart._entries == together._entries
    assert apart._deletes == together._deletes
    changes = plain(Counter(rest.changes) + Counter(glanced.changes))
    assert changes == plain(Counter(whole.changes))
    assert set(rest.touched) | set(glanced.touched) == set(whole.touched)


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data())
@settings(max_examples=OFTEN)
def test_what_a_sweep_passes_by_what_it_read_ahead_the_glance_passes(
    name: str, data: st.DataObject
) -> None:
    """Each row of the truth by itself: two that claim one slot are two looks."""
    world = data.draw(worlds(name))
    shape, truths = world.tables.shape, world.raw(world.family.truth.table)
    for truth in world.read_ahead():
        alone = scanned([truth], len(world.family.key), shape.source[0])
        right, new = world.glance().glance.of_scan(alone, SINCE, truths)
        assert (len(right), new) == (1, [])


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data())
@settings(max_examples=OFTEN)
def test_what_a_scan_of_the_truth_records_a_look_would_have_recorded(
    name: str, data: st.DataObject
) -> None:
    world = data.draw(worlds(name, unknown=10))
    family, truths = world.family, world.raw(world.family.truth.table)
    place = world.tables.shape.source[0]
    of_rows = scanned(truths, len(family.key), place)
    right, new = world.glance().glance.of_scan(of_rows, SINCE, truths)
    recorded, looked_at = deepcopy(world.lineage), deepcopy(world.lineage)
    wakes = [world.wake_of(right[key]) for key in right]
    looked = world.look(wakes, looked_at)
    assert (looked.suspects, looked.again, looked.later) == ((), (), ())
    entries = [entry_of(world.wake_of(right[key])) for key in new]
    recorded.remember(entries)
    assert recorded._entries == looked_at._entries


def entry_of(wake: Wake) -> Entry:
    assert wake.slot is not None
    assert wake.source is not None
    return Entry(wake.source, wake.slot, in_truth=True, recorded_at=NOW)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_right_is_passed(name: str) -> None:
    """Else the property above would hold of a glance that passes nothing."""
    world = World(*FAMILIES[name])
    family = world.family
    slot = Slot(*(PARTS[column.type][0] for column in family.key))
    source = source_at(family, slot, IDS[2])
    cells = {name: CELLS[kind][0] for name, kind in world.schema[family.truth.table].items()}
    cells["userflags"] = None  # of one that has some the list of its mailbox's flags is read
    world.add(slot, source, cells)
    world.lineage.remember([Entry(source, slot, in_truth=True, recorded_at=SINCE)])
    world.wakes = [Wake(slot.key, source, from_truth=True, changes=2), Wake(slot.key, None)]
    glanced = world.glance().at(world.wakes, SINCE)
    assert (list(glanced.left), glanced.examined) == ([], 1)
    assert (glanced.changes, glanced.touched) == ({slot.group: 3}, (slot,))
    assert can_expect(family, world.tables.shape)
    assert world.read_ahead() == world.raw(family.truth.table)

    world.lineage = Written()
    truths = world.raw(family.truth.table)
    of_rows = scanned(truths, len(family.key), world.tables.shape.source[0])
    _, new = world.glance().glance.of_scan(of_rows, SINCE, truths)
    assert new == list(of_rows.wakes_of)
