"""Step 5's reads: in which order, what is asked of lineage, and what is known of a slot then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.memory import NOTHING_REMEMBERED, Entry, Memory
from reconcilers.rows.seen import (
    Seen,
    SlotRows,
    claimants,
    is_one_sided,
    outlived_its_delete,
    seen_at,
)
from reconcilers.words.errors import Refused
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect
from streaming.steps.confirm import Confirmer, Unreadable
from tests.builders.indexes import APPLICABLE, DELETED, INDEXED, LISTS, THERE
from tests.builders.judging import NEAR
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    OTHER_MAILBOX,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.builders.slots import slots
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

HALF = 45 * SECOND // 2
THIRD_ID = UUID("44444444-0000-1000-8000-000000000004")


@dataclass
class RecordingTables(MemoryTables):
    """Takes down each read with what it was asked for, in order; some tables refuse."""

    reads: list[tuple[str, frozenset[object]]] = field(default_factory=list)
    refusing: str = ""

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        self._read(projection.table, slots)
        found = MemoryTables.projection_with_times(self, projection, slots)
        return {slot: Row(each.cells) for slot, each in found.items()}

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self._read(f"{projection.table} with times", slots)
        return super().projection_with_times(projection, slots)

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self._read("truth serially", messageids)
        return super().truth_serially(messageids)

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        raise AssertionError("the truth is confirmed at serial consistency only")

    def _read(self, what: str, of: Iterable[object]) -> None:
        self.reads.append((what, frozenset(of)))
        if self.refusing and what.startswith(self.refusing):
            raise Refused(f"no SELECT permission on {self.refusing}")

    def order(self) -> list[str]:
        return [what for what, _ in self.reads]


class AskedLineage(MemoryLineage):
    """Counts how often whole messages are asked for: that is several reads each."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[KeyValue] = []

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        wanted = list(sources)
        self.asked += wanted
        return super().of_sources(wanted)


def suspect(
    slot: Slot = SLOT,
    *messageids: UUID,
    projection: Projection = PROJECTION,
    suspected: Kind | None = None,
) -> Suspect:
    return Suspect(
        slot, frozenset(messageids), Kind.DIFFERING_CELLS, projection.name, suspected=suspected
    )


def confirm(
    tables: MemoryTables,
    *suspects: Suspect,
    lineage: MemoryLineage | None = None,
    family: Family = FAMILY,
    projection: Projection = PROJECTION,
) -> list[Seen]:
    kept = MemoryLineage() if lineage is None else lineage
    return Confirmer(family, projection, tables, kept, DELAY).read(suspects)


def only_listed() -> RecordingTables:
    return RecordingTables(rows={PROJECTION.name: {SLOT: row()}})


def both(cell: Row | None = None) -> RecordingTables:
    return RecordingTables(
        truths={MESSAGE_ID: (truth(),)},
        rows={PROJECTION.name: {SLOT: row() if cell is None else cell}},
    )


# --- the order of reads is the guard (promise 2) -------------------------------------------------


def test_the_list_is_read_first_then_the_truth_and_nothing_after_it() -> None:
    tables = both()
    confirm(tables, suspect(SLOT, MESSAGE_ID))
    assert tables.order() == ["messageidtable with times", "truth serially"]


@pytest.mark.parametrize("index", [DELETED, APPLICABLE], ids=lambda index: index.name)
def test_an_index_is_read_before_the_list_and_the_truth_comes_last(index: Projection) -> None:
    tables = both()
    tables.rows[index.name] = {SLOT: THERE}
    confirm(tables, suspect(SLOT, MESSAGE_ID, projection=index), family=INDEXED, projection=index)
    assert tables.order() == [f"{index.table} with times", "messageidtable", "truth serially"]


def test_all_suspects_are_read_together_in_that_order() -> None:
    tables = both()
    wanted = [Slot(MAILBOX, uid) for uid in (7, 8, 9)]
    confirm(tables, *(suspect(slot, MESSAGE_ID) for slot in wanted))
    assert tables.reads == [
        ("messageidtable with times", frozenset(wanted)),
        ("truth serially", frozenset({MESSAGE_ID})),
    ]


def test_the_row_is_the_one_that_was_read_before_the_truth() -> None:
    """A write that comes between the reads is in the truth, and not in the row."""

    class Overtaken(RecordingTables):
        def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
            self.rows[PROJECTION.name][SLOT] = row(flagseen=False, at=NOW)
            self.truths[MESSAGE_ID] = (truth(flagseen=False, at=NOW),)
            return super().truth_serially(messageids)

    tables = Overtaken(truths={MESSAGE_ID: (truth(),)}, rows={PROJECTION.name: {SLOT: row()}})
    (seen,) = confirm(tables, suspect(SLOT, MESSAGE_ID))
    assert seen.actual == row()
    assert seen.truths == (truth(flagseen=False, at=NOW),)


# --- whose truth is asked ------------------------------------------------------------------------


def test_every_message_that_may_claim_the_row_is_asked() -> None:
    tables = both(row(messageid=THIRD_ID))
    lineage = MemoryLineage()
    lineage.remember([Entry(OTHER_ID, Slot(MAILBOX, 7), in_truth=True)])
    (seen,) = confirm(tables, suspect(SLOT, MESSAGE_ID), lineage=lineage)
    everybody = frozenset({MESSAGE_ID, OTHER_ID, THIRD_ID})
    assert tables.reads[-1] == ("truth serially", everybody)
    assert seen.consulted == everybody


def test_an_index_asks_for_the_message_that_the_list_names() -> None:
    tables = RecordingTables(
        truths={MESSAGE_ID: (truth(),)},
        rows={DELETED.name: {SLOT: THERE}, LISTS.name: {SLOT: row()}},
    )
    (seen,) = confirm(tables, suspect(SLOT, projection=DELETED), family=INDEXED, projection=DELETED)
    assert seen.consulted == frozenset({MESSAGE_ID})
    assert (seen.actual, seen.truths, seen.listed) == (THERE, (truth(),), True)


def test_each_suspect_has_its_own_claimants() -> None:
    there = Slot(MAILBOX, 8)
    tables = both()
    tables.truths[OTHER_ID] = (truth(uid=8, messageid=OTHER_ID),)
    first, second = confirm(tables, suspect(SLOT, MESSAGE_ID), suspect(there, OTHER_ID))
    assert (first.slot, first.consulted) == (SLOT, frozenset({MESSAGE_ID}))
    assert (second.slot, second.consulted) == (there, frozenset({OTHER_ID}))
    assert second.truths == (truth(uid=8, messageid=OTHER_ID),)


def test_what_a_look_had_found_is_handed_on() -> None:
    (seen,) = confirm(both(), suspect(SLOT, MESSAGE_ID, suspected=Kind.EXTRA_ROW))
    assert seen.suspected is Kind.EXTRA_ROW
    assert seen.listed


# --- what is remembered is asked for only where it decides ---------------------------------------


@pytest.mark.parametrize("tables", [both(row(flagseen=False)), RecordingTables()])
def test_where_both_sides_have_the_row_or_neither_nobody_asks_what_is_remembered(
    tables: RecordingTables,
) -> None:
    lineage = AskedLineage()
    (seen,) = confirm(tables, suspect(SLOT, MESSAGE_ID), lineage=lineage)
    assert lineage.asked == []
    assert seen.memory == NOTHING_REMEMBERED


def remembering() -> AskedLineage:
    """The message had UIDs 7 and 8 here, 9 elsewhere; there were deletes of each kind."""
    lineage = AskedLineage()
    lineage.watch_from(LONG_AGO)
    lineage.remember(
        [
            Entry(
                MESSAGE_ID, Slot(MAILBOX, 7), in_truth=True, recorded_at=LONG_AGO + HALF + SECOND
            ),
            Entry(MESSAGE_ID, Slot(MAILBOX, 8), in_truth=False),
            Entry(MESSAGE_ID, Slot(OTHER_MAILBOX, 9), in_truth=True),
        ]
    )
    lineage.remember_deletes(
        [
            TruthDelete(MESSAGE_ID, (MAILBOX, None), NOW - 3 * SECOND),
            TruthDelete(MESSAGE_ID, (MAILBOX, 7), NOW - 2 * SECOND),
            TruthDelete(MESSAGE_ID, (OTHER_MAILBOX, None), NOW - 9 * SECOND),
            ProjectionDelete(SLOT, NOW - SECOND),
            ProjectionDelete(Slot(MAILBOX, 8), NOW - 4 * SECOND),
            ProjectionDelete(Slot(MAILBOX, 8), NOW - 5 * SECOND),
            ProjectionDelete(Slot(OTHER_MAILBOX, 9), NOW - 6 * SECOND),
        ]
    )
    return lineage


def test_a_row_that_only_the_list_has_is_seen_with_all_that_is_remembered() -> None:
    (seen,) = confirm(only_listed(), suspect(SLOT, MESSAGE_ID), lineage=remembering())
    memory = seen.memory
    assert (memory.known, memory.unsure) == (slots(7), slots(8))
    assert memory.complete_at == LONG_AGO + HALF + SECOND
    assert memory.range_deletes == frozenset({NOW - 3 * SECOND})
    assert memory.row_deletes == frozenset({NOW - 2 * SECOND})
    assert memory.projection_deletes == frozenset({NOW - SECOND})
    assert [len(times) for times in memory.sibling_deletes.values()] == [2]


def test_a_row_that_only_the_truth_has_is_seen_with_its_memory_too() -> None:
    lineage = remembering()
    (seen,) = confirm(
        RecordingTables(truths={MESSAGE_ID: (truth(),)}), suspect(SLOT, MESSAGE_ID), lineage=lineage
    )
    assert lineage.asked == [MESSAGE_ID]
    assert seen.memory.projection_deletes == frozenset({NOW - SECOND})


def test_what_was_recorded_before_watching_began_completes_no_memory() -> None:
    lineage = remembering()
    lineage.watch_from(LONG_AGO + 2 * SECOND)
    (seen,) = confirm(only_listed(), suspect(SLOT, MESSAGE_ID), lineage=lineage)
    assert seen.memory.known == slots(7)
    assert seen.memory.complete_at is None


def test_the_memory_of_all_claimants_counts() -> None:
    lineage = remembering()
    lineage.remember([Entry(OTHER_ID, Slot(MAILBOX, 11), in_truth=True)])
    (seen,) = confirm(only_listed(), suspect(SLOT, MESSAGE_ID, OTHER_ID), lineage=lineage)
    assert sorted(lineage.asked) == sorted([MESSAGE_ID, OTHER_ID])
    assert seen.memory.known == slots(7, 11)
    assert seen.memory.complete_at is None


def test_the_uids_that_the_truth_still_has_are_those_that_outlived_no_delete() -> None:
    deleted = NOW - 3 * SECOND
    tables = RecordingTables(
        rows={PROJECTION.name: {SLOT: row()}},
        truths={
            MESSAGE_ID: (
                truth(uid=8),
                truth(uid=9, at=deleted + DELAY),
                truth(uid=10, at=deleted + DELAY + 1),
                truth(uid=11, mailboxid=OTHER_MAILBOX),
                truth({"headercontent": None}, uid=12),
            )
        },
    )
    (seen,) = confirm(tables, suspect(SLOT, MESSAGE_ID), lineage=remembering())
    assert seen.present == slots(8, 10)


# --- tables that refuse --------------------------------------------------------------------------


def test_an_index_that_refuses_is_unreadable_and_says_why() -> None:
    tables = RecordingTables(refusing=DELETED.table)
    with pytest.raises(Unreadable, match="no SELECT permission on messagedeleted"):
        confirm(tables, suspect(projection=DELETED), family=INDEXED, projection=DELETED)
    assert tables.order() == ["messagedeleted with times"]


@pytest.mark.parametrize("refusing", ["messageidtable", "truth"])
def test_the_list_and_the_truth_are_no_index(refusing: str) -> None:
    for family, projection in ((FAMILY, PROJECTION), (INDEXED, DELETED)):
        tables = RecordingTables(refusing=refusing)
        with pytest.raises(Refused) as refused:
            confirm(tables, suspect(projection=projection), family=family, projection=projection)
        assert not isinstance(refused.value, Unreadable)


# --- what one look knows of a slot, from what was read --------------------------------------------

TOLERANCE = 10 * SECOND
HERE = truth()
SIBLING = truth(uid=8)
ELSEWHERE = truth(mailboxid=OTHER_MAILBOX)


def test_a_look_that_read_one_side_only_has_asked_nobody() -> None:
    assert Seen(SLOT, None, ()) == Seen(
        SLOT,
        None,
        (),
        consulted=frozenset(),
        memory=NOTHING_REMEMBERED,
        present=frozenset(),
        suspected=None,
        listed=False,
    )


def read(actual: Row | None, *truths: Row, listed: Row | None = None) -> SlotRows:
    return SlotRows(actual, listed, frozenset({MESSAGE_ID}), truths)


def seen(rows: SlotRows, memory: Memory = NOTHING_REMEMBERED) -> Seen:
    return seen_at(FAMILY, suspect(SLOT, MESSAGE_ID), rows, memory, TOLERANCE)


# --- claimants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "listed", "remembered", "claiming"),
    [
        ([], None, [], []),
        ([OTHER_ID], row(), [THIRD_ID], [MESSAGE_ID, OTHER_ID, THIRD_ID]),
        ([OTHER_ID], row(messageid=None), [], [OTHER_ID]),
    ],
    ids=["nothing is known", "events, the row and memory", "a row that names no message"],
)
def test_who_may_claim_a_slot(
    named: list[UUID], listed: Row | None, remembered: list[UUID], claiming: list[UUID]
) -> None:
    entries = [Entry(each, SLOT, in_truth=True) for each in remembered]
    assert claimants(FAMILY, suspect(SLOT, *named), listed, entries) == set(claiming)


# --- is_one_sided --------------------------------------------------------------------------------


ONE_SIDED = {
    "neither": (read(None), False),
    "both": (read(row(), HERE), False),
    "projection only": (read(row()), True),
    "truth only": (read(None, HERE), True),
    "the truth's row is of another uid": (read(row(), SIBLING), True),
    "the truth's row is in another mailbox": (read(row(), ELSEWHERE), True),
    "other rows of the message": (read(None, SIBLING, ELSEWHERE), False),
}


@pytest.mark.parametrize(("rows", "expected"), ONE_SIDED.values(), ids=ONE_SIDED)
def test_memory_is_asked_where_one_side_alone_has_the_row(rows: SlotRows, expected: bool) -> None:
    assert is_one_sided(FAMILY, SLOT, rows) is expected


# --- seen_at -------------------------------------------------------------------------------------


def test_only_rows_of_this_mailbox_and_uid_claim_it() -> None:
    one = seen(read(row(), HERE, SIBLING, ELSEWHERE))
    assert one.truths == (HERE,)
    assert one.present == slots(7, 8)


def test_what_was_read_asked_and_remembered_is_kept() -> None:
    memory = Memory(known=slots(7))
    rows = SlotRows(row(), row(), frozenset({MESSAGE_ID, OTHER_ID}), ())
    one = seen_at(FAMILY, suspect(SLOT, suspected=Kind.EXTRA_ROW), rows, memory, TOLERANCE)
    assert (one.slot, one.actual, one.memory) == (SLOT, rows.actual, memory)
    assert (one.consulted, one.suspected) == (rows.claimants, Kind.EXTRA_ROW)
    assert one.listed  # of an index, whether the message is
    assert not seen(read(None)).listed


def test_a_row_that_only_outlived_its_delete_is_not_present_but_claims_its_slot() -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO - SECOND}))
    one = seen(read(None, HERE, truth(uid=8, at=LONG_AGO + 3600 * SECOND)), memory)
    assert one.present == slots(8)
    assert one.truths == (HERE,)


def test_a_row_that_is_older_than_a_delete_accounts_for_one() -> None:
    """A truth that was restored has it again; it is there, as any other."""
    memory = Memory(range_deletes=frozenset({LONG_AGO - 3600 * SECOND, LONG_AGO + 3600 * SECOND}))
    one = seen(read(None, HERE, truth(uid=8, at=LONG_AGO + 7200 * SECOND)), memory)
    assert len(one.present) == 2
    assert list(one.memory.sibling_deletes.values()) == [{LONG_AGO + 3600 * SECOND}]


# --- outlived_its_delete -------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [0, TOLERANCE, -TOLERANCE, TOLERANCE + 1, -TOLERANCE - 1])
def test_as_near_as_two_clocks_may_differ(apart: Micros) -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO + apart}))
    assert outlived_its_delete(HERE, memory, TOLERANCE) is (abs(apart) <= TOLERANCE)


def test_a_delete_that_named_its_uid_or_was_of_the_projection_says_nothing_here() -> None:
    assert not outlived_its_delete(
        HERE, Memory(row_deletes=NEAR, projection_deletes=NEAR), TOLERANCE
    )


def test_one_cell_that_is_near_is_enough() -> None:
    memory = Memory(range_deletes=frozenset({LONG_AGO + 3600 * SECOND}))
    late = row(written={"flagseen": LONG_AGO + 3600 * SECOND + TOLERANCE})
    assert outlived_its_delete(late, memory, TOLERANCE)
