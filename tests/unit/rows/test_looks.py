"""All looks at a share: around a key that cannot be read, and a whole mailbox in slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import (
    NO_PROJECTION,
    KeyValue,
    Kind,
    Row,
    Slot,
    Suspect,
    Wake,
    look_again,
)
from streaming.steps import looks
from streaming.steps.look import Look, LookResult
from streaming.steps.looks import Looks
from tests.builders.indexes import APPLICABLE, INDEXED, gathered
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    row,
    truth,
)
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables, PoisonedTables
from tests.fakes.refusing import message_at

LIST = PROJECTION.name
WHOLE = FAMILY.whole_group(MAILBOX)
EXPUNGED = Wake((MAILBOX, None), OTHER_ID, NOW, "imapuidtable", NOW, from_truth=True)


def at(uid: int) -> Slot:
    return Slot(MAILBOX, uid)


@dataclass
class Poisoned(PoisonedTables):
    """Some messages cannot be read either, nor some table; ``reads`` are the sizes of reads."""

    bad_sources: set[KeyValue] = field(default_factory=set)
    bad_table: str = ""
    reads: list[int] = field(default_factory=list)

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        wanted = list(messageids)
        if self.bad_sources.intersection(wanted):
            raise ReadFailed("cannot be decoded")
        return super().truth_rows(wanted)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        wanted = list(slots)
        self.reads.append(len(wanted))
        if projection.name == self.bad_table:
            raise self.error
        return super().projection_rows(projection, wanted)


@dataclass
class Ground:
    """A mailbox of ten messages, none of which is listed."""

    tables: Poisoned = field(default_factory=Poisoned)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)

    def __post_init__(self) -> None:
        for uid in range(1, 11):
            message = message_at(at(uid))
            self.tables.truths[message] = (truth(uid=uid, messageid=message),)

    def look(self, *wakes: Wake, apart: frozenset[Slot] = frozenset()) -> list[LookResult]:
        one = Look(FAMILY, self.tables, self.lineage, LONG_AGO, apart)
        return list(Looks(one).at(wakes, NOW))


def changed(uid: int) -> Wake:
    return Wake((MAILBOX, uid), message_at(at(uid)), oldest=NOW, changes=2)


def suspects(found: list[LookResult]) -> list[Suspect]:
    return [each for looked in found for each in looked.suspects]


def unreadable(found: list[LookResult]) -> Mapping[Slot, str]:
    return {each.slot: each.unreadable for each in suspects(found) if each.unreadable}


def counted(found: list[LookResult]) -> tuple[int, set[Slot]]:
    """Changes, and the slots they were of."""
    changes = sum(looked.changes.get(MAILBOX, 0) for looked in found)
    return changes, {slot for looked in found for slot in looked.touched}


@pytest.fixture
def ground() -> Ground:
    return Ground()


# --- one key -------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_read_is_told_and_its_neighbours_are_compared(ground: Ground) -> None:
    ground.tables.bad = {at(4)}
    found = ground.look(*(changed(uid) for uid in range(1, 11)))
    assert unreadable(found) == {at(4): "too many tombstones"}
    missing = {uid_of(each.slot) for each in suspects(found) if each.kind is Kind.MISSING_ROW}
    assert missing == set(range(1, 11)) - {4}
    assert counted(found) == (20, {at(uid) for uid in range(1, 11)})


def test_a_message_that_cannot_be_read_is_told(ground: Ground) -> None:
    ground.tables.bad_sources = {message_at(at(4))}
    found = ground.look(changed(3), changed(4))
    assert unreadable(found) == {at(4): "cannot be decoded"}
    (told,) = [each for each in suspects(found) if each.unreadable]
    assert (told.sources, told.projection) == (frozenset({message_at(at(4))}), LIST)


def test_where_nothing_can_be_read_no_key_is_blamed(ground: Ground) -> None:
    ground.tables.bad = {at(4), FAMILY.nowhere}
    with pytest.raises(ReadFailed):
        ground.look(changed(3), changed(4))


def test_a_message_without_a_known_row_is_told_of_its_mailbox(ground: Ground) -> None:
    ground.tables.bad_sources = {OTHER_ID}
    found = ground.look(EXPUNGED, changed(3))
    assert unreadable(found) == {WHOLE: "cannot be decoded"}
    assert counted(found)[0] == EXPUNGED.changes + 2
    nowhere = ground.look(replace(EXPUNGED, key=(None, None)))
    assert unreadable(nowhere).keys() == {FAMILY.whole_group(None)}


def test_what_is_remembered_of_it_counts_as_touched(ground: Ground) -> None:
    ground.tables.bad_sources = {OTHER_ID}
    ground.lineage.remember([Entry(OTHER_ID, at(30), in_truth=True, recorded_at=NOW)])
    assert counted(ground.look(EXPUNGED)) == (2, {at(30)})


# --- what is known -------------------------------------------------------------------------------


def test_what_is_known_is_not_read_but_counted(ground: Ground) -> None:
    ground.tables.bad = {at(4)}
    found = ground.look(changed(3), changed(4), apart=frozenset({at(4)}))
    assert unreadable(found) == {}
    assert counted(found) == (4, {at(3), at(4)})
    assert ground.tables.reads == [1, 0]


def test_its_deletes_are_remembered(ground: Ground) -> None:
    wake = replace(changed(4), deleted_from="messageidtable", deleted_at=NOW)
    ground.look(wake, apart=frozenset({at(4)}))
    assert ground.lineage.projection_deletes(at(4)).received == {NOW}


def test_a_look_of_its_own_reads_it_by_itself(ground: Ground) -> None:
    again = replace(changed(4), looked_again=True, projection=LIST)
    found = ground.look(changed(3), again, apart=frozenset({at(4)}))
    assert len(found) == 2
    assert {each.slot for each in suspects(found)} == {at(3), at(4)}
    ground.tables.bad = {at(4)}
    found = ground.look(again, apart=frozenset({at(4)}))
    assert unreadable(found).keys() == {at(4)}
    assert counted(found) == (0, set())


# --- a whole mailbox -----------------------------------------------------------------------------


def test_a_mailbox_that_cannot_be_read_as_a_whole_is_told(ground: Ground) -> None:
    ground.tables.scan_fails = ReadFailed("too many tombstones")
    found = ground.look(EXPUNGED, changed(3))
    assert unreadable(found) == {WHOLE: "too many tombstones"}
    assert at(3) in {each.slot for each in suspects(found)}


def test_it_is_not_tried_again_before_its_own_look(ground: Ground) -> None:
    ground.tables.scan_fails = AssertionError("nobody asks")
    assert unreadable(ground.look(EXPUNGED, apart=frozenset({WHOLE}))) == {}


def test_its_own_look_compares_every_row_there(ground: Ground) -> None:
    listed = {at(uid): row(uid=uid, messageid=OTHER_ID) for uid in (20, 21)}
    ground.tables.rows[LIST] = listed
    again = Wake(WHOLE.key, None, looked_again=True, projection=LIST)
    found = ground.look(again, apart=frozenset({WHOLE}))
    extra = {each.slot for each in suspects(found) if each.kind is Kind.EXTRA_ROW}
    assert extra == set(listed)
    assert [each.kind for each in suspects(found) if each.slot == WHOLE] == [None]
    ground.tables.scan_fails = ReadFailed("too many tombstones")
    assert unreadable(ground.look(again, apart=frozenset({WHOLE}))).keys() == {WHOLE}


# --- slices --------------------------------------------------------------------------------------


@pytest.fixture
def three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "KEYS_A_LOOK", 3)


@pytest.mark.usefixtures("three_at_once")
def test_a_wake_that_leads_to_a_whole_mailbox_is_looked_at_in_slices(ground: Ground) -> None:
    ground.lineage.remember(
        Entry(message_at(at(uid)), at(uid), in_truth=True) for uid in range(1, 11)
    )
    partition = Wake((MAILBOX, None), None, NOW, "messagedeleted", NOW)
    found = ground.look(partition)
    assert [looked.examined for looked in found] == [3, 3, 3, 1]
    assert {each.slot for each in suspects(found)} == {at(uid) for uid in range(1, 11)}
    assert counted(found) == (11, {at(uid) for uid in range(1, 11)})


@pytest.mark.usefixtures("three_at_once")
def test_that_a_slice_is_no_evidence_against_its_rows(ground: Ground) -> None:
    ground.lineage.remember([Entry(MESSAGE_ID, at(1), in_truth=True)])
    ground.look(Wake((MAILBOX, None), None, NOW, PROJECTION.table, NOW))
    assert ground.lineage.projection_deletes(at(1)).ends == frozenset()


def test_what_is_remembered_there_and_cannot_be_read_is_told_with_its_message(
    ground: Ground,
) -> None:
    ground.lineage.remember(
        Entry(message_at(at(uid)), at(uid), in_truth=True) for uid in range(1, 4)
    )
    ground.tables.bad = {at(2)}
    found = ground.look(Wake((MAILBOX, None), None, NOW, "messagedeleted", NOW))
    (told,) = [each for each in suspects(found) if each.unreadable]
    assert (told.slot, told.sources) == (at(2), frozenset({message_at(at(2))}))


# --- an index, and our own memory ----------------------------------------------------------------


def test_an_index_of_which_nothing_can_be_read_is_blamed_on_no_row(ground: Ground) -> None:
    """However many keys there are: it holds up neither the listing nor the other indexes."""
    ground.tables.bad_table = "deleted_uids"
    one = Look(INDEXED, ground.tables, ground.lineage, LONG_AGO)
    found = list(Looks(one).at([changed(uid) for uid in range(1, 11)], NOW))
    told = suspects(found)
    assert all(each.unreadable is None for each in told)
    missing = {each.slot for each in told if each.projection == LIST}
    assert missing == {at(uid) for uid in range(1, 11)}


def test_a_memory_that_cannot_be_read_is_blamed_on_no_row(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ReadFailed("too many tombstones")

    monkeypatch.setattr(ground.lineage, "of_slots", fails)
    with pytest.raises(ReadFailed):
        ground.look(*(changed(uid) for uid in range(1, 4)))


# --- a row that collects -------------------------------------------------------------------------


def collecting(*flags: str) -> MemoryTables:
    """A mailbox of ten messages with the flags a and b, and these flags in its row."""
    tables = MemoryTables()
    for uid in range(1, 11):
        message = message_at(at(uid))
        cells = {"userflags": frozenset({"a", "b"} if uid < 3 else {"a"})}
        tables.truths[message] = (truth(cells, uid=uid, messageid=message),)
        tables.rows.setdefault(LIST, {})[at(uid)] = row(cells, uid=uid, messageid=message)
        tables.rows.setdefault(APPLICABLE.name, {})[at(uid)] = gathered(*flags)
    return tables


def look_at_collected(tables: MemoryTables, *wakes: Wake) -> list[LookResult]:
    family = replace(INDEXED, projections=(INDEXED.listing, APPLICABLE))
    return list(Looks(Look(family, tables, MemoryLineage(), LONG_AGO)).at(wakes, NOW))


def test_of_a_mailbox_as_a_whole_the_rows_are_looked_at_whose_flags_are_not_collected() -> None:
    scheduled = look_again(WHOLE, NO_PROJECTION)
    found = look_at_collected(collecting("a", "c"), scheduled)
    assert {each.slot for each in suspects(found)} == {at(1), at(2)}
    assert {each.projection for each in suspects(found)} == {APPLICABLE.name}
    assert sum(looked.examined for looked in found) == 2
    assert suspects(look_at_collected(collecting("a", "b"), scheduled)) == []


def test_where_the_row_that_collects_is_gone_every_row_with_flags_is_looked_at() -> None:
    tables = collecting()
    del tables.rows[APPLICABLE.name]
    found = look_at_collected(tables, look_again(WHOLE, NO_PROJECTION))
    assert {each.slot for each in suspects(found)} == {at(uid) for uid in range(1, 11)}


def test_an_event_of_the_row_that_collects_leads_to_nothing_yet() -> None:
    """Also where the mailbox is known to be unreadable as a whole: nothing is counted."""
    event, tables = Wake(WHOLE.key, None, oldest=NOW), collecting()
    assert not any(looked.examined or looked.changes for looked in look_at_collected(tables, event))
    one = Look(INDEXED, tables, MemoryLineage(), LONG_AGO, frozenset({WHOLE}))
    assert not any(looked.changes for looked in Looks(one).at([event], NOW))


def test_a_mailbox_whose_rows_cannot_be_listed_is_told() -> None:
    tables = PoisonedTables(scan_fails=ReadFailed("too many tombstones"))
    found = look_at_collected(tables, look_again(WHOLE, NO_PROJECTION))
    assert unreadable(found) == {WHOLE: "too many tombstones"}


@pytest.mark.parametrize("error", [Refused("no SELECT"), ReadFailed("too many tombstones")])
def test_where_the_row_that_collects_cannot_be_read_the_mailbox_is_due_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its slots reports the table; a finding would not bring back the others."""
    tables, scheduled = collecting("a", "c"), look_again(WHOLE, NO_PROJECTION)
    read = tables.projection_rows

    def fails(projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        if projection.name == APPLICABLE.name:
            raise error
        return read(projection, slots)

    monkeypatch.setattr(tables, "projection_rows", fails)
    found = look_at_collected(tables, scheduled)
    assert [(each.slot, each.projection) for each in suspects(found)] == [(at(1), APPLICABLE.name)]
    assert [slot for looked in found for slot in looked.later] == [at(1), WHOLE]

    monkeypatch.undo()
    assert {each.slot for each in suspects(look_at_collected(tables, scheduled))} == {at(1), at(2)}
