"""Deleted rows of the list whose message nobody remembers: looked at again, then unresolved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.rows.deletes import TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.words.model import KeyValue, Kind, Micros, Slot, Suspect, Wake
from streaming.steps.look import Look, LookResult
from tests.builders.rows import (
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables

DELETED_AT = NOW - 100 * SECOND
MINUTE: Micros = 60 * SECOND
GONE = Wake(
    (MAILBOX, 7),
    None,
    oldest=DELETED_AT - SECOND,
    deleted_from="messageidtable",
    deleted_at=DELETED_AT,
)
AGAIN = replace(GONE, looked_again=True)
UNRESOLVED = Suspect(
    SLOT,
    frozenset(),
    Kind.UNRESOLVED,
    PROJECTION.name,
    DELETED_AT - SECOND,
    looked_again=True,
)


def look(
    wake: Wake, tables: MemoryTables | None = None, lineage: MemoryLineage | None = None
) -> LookResult:
    kept = MemoryLineage() if lineage is None else lineage
    return Look(FAMILY, tables or MemoryTables(), kept, LONG_AGO).at([wake], NOW)


def outcome(looked: LookResult) -> str:
    lost = [each for each in looked.suspects if each.kind is Kind.UNRESOLVED]
    assert looked.unresolved == len(lost) + len(looked.again)
    return "unresolved" if lost else "looked at again" if looked.again else "resolved"


def test_the_first_look_only_comes_back() -> None:
    looked = look(GONE)
    assert (looked.again, looked.suspects, looked.unresolved) == ((GONE,), (), 1)


def test_the_second_look_tells_a_person() -> None:
    looked = look(AGAIN)
    assert (looked.again, looked.suspects, looked.unresolved) == ((), (UNRESOLVED,), 1)


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        (-MINUTE - 1, "unresolved"),
        (-MINUTE, "resolved"),
        (0, "resolved"),
        (MINUTE, "resolved"),
        (MINUTE + 1, "unresolved"),
    ],
)
def test_a_truth_delete_within_a_minute_of_it_explains_it(apart: Micros, expected: str) -> None:
    lineage = MemoryLineage()
    lineage.remember_deletes([TruthDelete(OTHER_ID, (MAILBOX, None), DELETED_AT + apart)])
    assert outcome(look(AGAIN, lineage=lineage)) == expected


def test_a_truth_delete_of_another_mailbox_explains_nothing() -> None:
    lineage = MemoryLineage()
    lineage.remember_deletes([TruthDelete(OTHER_ID, (OTHER_ID, None), DELETED_AT)])
    assert outcome(look(AGAIN, lineage=lineage)) == "unresolved"


@pytest.mark.parametrize(
    ("at", "within"),
    [
        (2**63 - 1, [2**63 - 1 - MINUTE, 2**63 - 1]),
        (-(2**63) + 1, [-(2**63), -(2**63) + 1 + MINUTE]),
    ],
)
def test_a_delete_at_an_absurd_time_asks_within_64_bits(at: Micros, within: list[Micros]) -> None:
    asked: list[Micros] = []

    class Asked(MemoryLineage):
        def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
            asked.extend((since, until))
            return False

    assert outcome(look(replace(AGAIN, deleted_at=at), lineage=Asked())) == "unresolved"
    assert asked == within


def test_the_first_look_comes_back_whatever_explains_it() -> None:
    lineage = MemoryLineage()
    lineage.remember_deletes([TruthDelete(OTHER_ID, (MAILBOX, None), DELETED_AT)])
    assert outcome(look(GONE, lineage=lineage)) == "looked at again"


@pytest.mark.parametrize("wake", [GONE, AGAIN], ids=["first", "again"])
def test_a_row_that_is_there_again_is_resolved(wake: Wake) -> None:
    tables = MemoryTables(rows={PROJECTION.name: {SLOT: row(messageid=None)}})
    assert outcome(look(wake, tables)) == "resolved"


@pytest.mark.parametrize("wake", [GONE, AGAIN], ids=["first", "again"])
def test_a_row_whose_message_is_remembered_is_resolved(wake: Wake) -> None:
    lineage = MemoryLineage()
    lineage.remember([Entry(MESSAGE_ID, Slot(MAILBOX, 7), in_truth=False)])
    assert outcome(look(wake, lineage=lineage)) == "resolved"


@pytest.mark.parametrize(
    "wake",
    [
        pytest.param(replace(GONE, source=MESSAGE_ID), id="its event named the message"),
        pytest.param(replace(GONE, deleted_at=None, deleted_from=None), id="it is no delete"),
        pytest.param(replace(GONE, deleted_from="imapuidtable"), id="of the truth"),
        pytest.param(replace(GONE, deleted_from="messagedeleted"), id="of an index"),
        pytest.param(replace(GONE, key=(MAILBOX, None)), id="of a whole mailbox"),
    ],
)
@pytest.mark.parametrize("looked_again", [False, True], ids=["first", "again"])
def test_what_is_no_riddle(wake: Wake, *, looked_again: bool) -> None:
    assert outcome(look(replace(wake, looked_again=looked_again))) == "resolved"


def test_a_riddle_keeps_up_none_of_the_others() -> None:
    other = replace(GONE, key=(MAILBOX, 8), deleted_from="imapuidtable")
    looked = Look(FAMILY, MemoryTables(), MemoryLineage(), LONG_AGO).at([other, GONE], NOW)
    assert looked.again == (GONE,)
    assert looked.examined == 2


# --- a whole message ------------------------------------------------------------------------------


PARTITION = Wake(
    (None, None),
    MESSAGE_ID,
    oldest=NOW,
    deleted_from="imapuidtable",
    deleted_at=NOW,
    from_truth=True,
)


@pytest.mark.parametrize(
    ("wake", "tables", "expected"),
    [
        pytest.param(PARTITION, MemoryTables(), "looked at again", id="first"),
        pytest.param(
            replace(PARTITION, looked_again=True), MemoryTables(), "resolved", id="only once"
        ),
        pytest.param(replace(PARTITION, source=None), MemoryTables(), "resolved", id="of none"),
        pytest.param(
            replace(PARTITION, key=(MAILBOX, None)), MemoryTables(), "resolved", id="in one mailbox"
        ),
        pytest.param(
            PARTITION,
            MemoryTables(truths={MESSAGE_ID: (truth(),)}),
            "resolved",
            id="made again since",
        ),
    ],
)
def test_a_message_that_was_deleted_whole(wake: Wake, tables: MemoryTables, expected: str) -> None:
    assert outcome(look(wake, tables)) == expected
