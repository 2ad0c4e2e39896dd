"""How a fault may end follows from what else was sent to its row."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.mailserver.counters import CURRENT_QUOTA, MAILBOX_COUNTERS
from deploy.mailserver.history import (
    MESSAGES,
    CounterWrite,
    ProjectionWrite,
    RowPlace,
    Statement,
    counter_row,
    resulting_row,
)
from deploy.mailserver.ledger import (
    AMBIGUOUS_RANGE_DELETE,
    CONTENT_LOST,
    HEALED,
    VERIFIED,
    Ledger,
    LedgerEntry,
    held_rows,
    judge,
    read_entries,
)

MAILBOX, MESSAGE = uuid.uuid1(), uuid.uuid1()
ROW = (MAILBOX, 1)

INSERT = ProjectionWrite(
    Statement.INSERT,
    "append",
    MESSAGE,
    MAILBOX,
    1,
    cells={"messageid": MESSAGE, "modseq": 1, "flagseen": False},
    added=frozenset({"work"}),
)
SEEN = ProjectionWrite(
    Statement.FLAGS, "flags", MESSAGE, MAILBOX, 1, cells={"modseq": 2, "flagseen": True}
)
UNSEEN = replace(SEEN, cells={"modseq": 3, "flagseen": False})
NOT_WORK = replace(SEEN, cells={"modseq": 4}, removed=frozenset({"work"}))
DELETE = ProjectionWrite(Statement.DELETE, "expunge", MESSAGE, MAILBOX, 1)


def endings(
    meant: list[ProjectionWrite], applied: list[tuple[int, ProjectionWrite]]
) -> tuple[str, ...]:
    ledger = Ledger()
    for write in meant:
        ledger.meant(write)
    for time, write in applied:
        ledger.applied(write, time)
    ledger.fault("fault-1", "any", meant[0])
    [entry] = ledger.entries()
    differing = {place for place in ledger.differing({}) if place[0] == MESSAGES}
    assert (differing == {(MESSAGES, ROW)}) == (HEALED not in entry.accepts)
    return entry.accepts


MUST_BE_REPAIRED = {
    "lost insert": ([INSERT], []),
    "lost insert, then flags: a partial row": ([INSERT, SEEN], [(2, SEEN)]),
    "lost flags": ([INSERT, SEEN], [(1, INSERT)]),
    "lost flags, then other cells": ([INSERT, SEEN, NOT_WORK], [(1, INSERT), (3, NOT_WORK)]),
    "lost delete": ([INSERT, DELETE], [(1, INSERT)]),
    "insert sent again after a flag change": ([INSERT, SEEN], [(2, SEEN), (3, INSERT)]),
    "insert sent again after the delete": ([INSERT, DELETE], [(2, DELETE), (3, INSERT)]),
    "flags sent again after the delete": (
        [INSERT, SEEN, DELETE],
        [(1, INSERT), (3, DELETE), (4, SEEN)],
    ),
    "flags sent again after newer flags": (
        [INSERT, SEEN, UNSEEN],
        [(1, INSERT), (3, UNSEEN), (4, SEEN)],
    ),
}


MAY_BE_HEALED = {
    "insert applied twice": ([INSERT], [(1, INSERT), (2, INSERT)]),
    "lost insert, then expunged": ([INSERT, DELETE], [(2, DELETE)]),
    "lost flags, then the same cells": ([INSERT, SEEN, UNSEEN], [(1, INSERT), (3, UNSEEN)]),
    "late insert with its old time after flags": ([INSERT, SEEN], [(2, SEEN), (1, INSERT)]),
    "late flags with their old time after the delete": (
        [INSERT, SEEN, DELETE],
        [(1, INSERT), (3, DELETE), (2, SEEN)],
    ),
    "late delete": ([INSERT, DELETE], [(1, INSERT), (9, DELETE)]),
}


@pytest.mark.parametrize("case", [*MUST_BE_REPAIRED, *MAY_BE_HEALED])
def test_how_a_fault_may_end(case: str) -> None:
    """As verified only, or healed by what was sent after it, too."""
    may = case in MAY_BE_HEALED
    told = (MAY_BE_HEALED if may else MUST_BE_REPAIRED)[case]
    assert endings(*told) == ((VERIFIED, HEALED) if may else (VERIFIED,))


def test_a_lost_delete_of_one_of_two_copies_may_be_ambiguous() -> None:
    ledger = Ledger()
    copy = replace(INSERT, uid=2)
    for write in (INSERT, copy, DELETE):
        ledger.meant(write)
    ledger.applied(INSERT, 1)
    ledger.applied(copy, 2)
    ledger.fault("fault-1", "not_sent", DELETE)
    [entry] = ledger.entries()
    assert entry.accepts == (VERIFIED, AMBIGUOUS_RANGE_DELETE, CONTENT_LOST)


def test_a_statement_without_an_answer_may_end_either_way() -> None:
    ledger = Ledger()
    ledger.meant(INSERT)
    ledger.doubtful(INSERT)
    ledger.fault("fault-1", "late", INSERT)
    [entry] = ledger.entries()
    assert entry.accepts == (VERIFIED, HEALED)


def test_user_flags_are_cells_of_their_own() -> None:
    row = resulting_row([(1, INSERT), (2, NOT_WORK)])
    assert row == {"messageid": MESSAGE, "modseq": 4, "flagseen": False}


# --- indexes: a row is right if the message, as it was meant to be, belongs there

IN_INDEX = ProjectionWrite(
    Statement.INSERT, "append", MESSAGE, MAILBOX, 1, {"uid": 1}, projection="unseen_uids"
)
OUT_OF_INDEX = replace(IN_INDEX, statement=Statement.DELETE, cells={})
FLAGS_IN_USE = ProjectionWrite(
    Statement.FLAGS,
    "append",
    MESSAGE,
    MAILBOX,
    0,
    added=frozenset({"work"}),
    projection="applicable_flags",
)


def index_endings(
    messages: list[ProjectionWrite],
    applied: list[ProjectionWrite],
    lost: ProjectionWrite,
) -> tuple[str, ...]:
    """All messages arrive, and of the statements to the index those in `applied`."""
    ledger = Ledger()
    for time, write in enumerate([*messages, *applied]):
        if write.projection == MESSAGES:
            ledger.meant(write)
        ledger.applied(write, time)
    ledger.fault("fault-1", "not_sent", lost)
    [entry] = ledger.entries()
    assert (lost.place in ledger.differing({})) == (HEALED not in entry.accepts)
    return entry.accepts


INDEX_MUST_BE_REPAIRED = {
    "lost insert": ([INSERT], [], IN_INDEX),
    "lost delete after a flag": ([INSERT, SEEN], [IN_INDEX], OUT_OF_INDEX),
    "lost delete after an expunge": ([INSERT, DELETE], [IN_INDEX], OUT_OF_INDEX),
    "lost insert after a flag": ([INSERT, SEEN, UNSEEN], [IN_INDEX, OUT_OF_INDEX], IN_INDEX),
    "a user flag is not listed": ([INSERT], [], FLAGS_IN_USE),
}
INDEX_MAY_BE_HEALED = {
    "applied": ([INSERT], [IN_INDEX], IN_INDEX),
    "lost insert, then the flag": ([INSERT, SEEN], [OUT_OF_INDEX], IN_INDEX),
    "lost insert, then expunged": ([INSERT, DELETE], [OUT_OF_INDEX], IN_INDEX),
    "lost delete, then expunged": ([INSERT, SEEN, DELETE], [IN_INDEX, OUT_OF_INDEX], OUT_OF_INDEX),
    "another message lists the user flag": ([INSERT], [FLAGS_IN_USE], FLAGS_IN_USE),
    "the user flag is not in use any more": ([INSERT, NOT_WORK], [], FLAGS_IN_USE),
}


@pytest.mark.parametrize("case", [*INDEX_MUST_BE_REPAIRED, *INDEX_MAY_BE_HEALED])
def test_how_a_fault_of_an_index_may_end(case: str) -> None:
    may = case in INDEX_MAY_BE_HEALED
    told = (INDEX_MAY_BE_HEALED if may else INDEX_MUST_BE_REPAIRED)[case]
    assert index_endings(*told) == ((VERIFIED, HEALED) if may else (VERIFIED,))


def test_an_index_is_not_wrong_where_the_message_is() -> None:
    ledger = Ledger()
    ledger.meant(INSERT)
    assert {place[0] for place in ledger.differing({})} == {MESSAGES, "mailbox_counters"}


# --- counters: what was counted against what the messages add up to


def counted(*writes: CounterWrite) -> set[str]:
    """The counter tables that are wrong with one message of 7 octets in the mailbox."""
    ledger = Ledger()
    message = replace(INSERT, cells={**INSERT.cells, "fullcontentoctets": 7})
    ledger.meant(message)
    ledger.applied(message, 1)
    for write in writes:
        ledger.counted(write)
    wrong = {projection for projection, _ in ledger.differing({MAILBOX: "root"})}
    return wrong - {"unseen_uids", "applicable_flags"}


COUNTED = CounterWrite("mailbox_counters", "append", MESSAGE, MAILBOX, {"count": 1, "unseen": 1})
QUOTA = CounterWrite("current_quota", "append", MESSAGE, "root", {"messagecount": 1, "storage": 7})


def test_a_counter_is_right_when_each_message_was_counted_once() -> None:
    assert counted(COUNTED, QUOTA) == set()
    assert counted(QUOTA) == counted(COUNTED, COUNTED, QUOTA) == {MAILBOX_COUNTERS.projection}
    assert counted(COUNTED) == counted(COUNTED, QUOTA, QUOTA) == {CURRENT_QUOTA.projection}


def test_a_fault_of_a_counter_may_be_made_up_for_by_another() -> None:
    ledger = Ledger()
    ledger.fault("fault-1", "not_sent", QUOTA)
    [entry] = ledger.entries()
    assert entry.accepts == (VERIFIED, HEALED)
    assert entry.places == (("current_quota", counter_row("root")),)


def entry(*accepts: str) -> LedgerEntry:
    return LedgerEntry("x", "kind", "append", "insert", MESSAGE, (ROW,), datetime.now(UTC), accepts)


@pytest.mark.parametrize(
    ("accepts", "words", "differs", "ending"),
    [
        ((VERIFIED,), {VERIFIED}, False, VERIFIED),
        ((VERIFIED,), {VERIFIED}, True, None),
        ((VERIFIED,), set(), False, None),
        ((VERIFIED, HEALED), set(), False, HEALED),
        ((VERIFIED, HEALED), {VERIFIED}, False, VERIFIED),
        ((VERIFIED, HEALED), set(), True, None),
        (("duplicate_uid",), {"duplicate_uid"}, True, "duplicate_uid"),
        (("duplicate_uid",), {VERIFIED}, False, None),
        ((VERIFIED, AMBIGUOUS_RANGE_DELETE), {VERIFIED}, False, VERIFIED),
    ],
)
def test_judge(accepts: tuple[str, ...], words: set[str], differs: bool, ending: str) -> None:
    place: RowPlace = (MESSAGES, ROW)
    differing = frozenset({place}) if differs else frozenset()
    said = {place: frozenset(words)}
    assert judge(entry(*accepts), said, differing) == ending


def test_what_is_said_of_another_projection_is_no_ending() -> None:
    said: dict[RowPlace, frozenset[str]] = {("unseen_uids", ROW): frozenset({VERIFIED})}
    assert judge(entry(VERIFIED), said, frozenset()) is None
    assert judge(entry(VERIFIED, HEALED), {}, frozenset({("unseen_uids", ROW)})) == HEALED


def test_only_reported_classes_may_still_differ() -> None:
    assert held_rows([entry(VERIFIED), entry(VERIFIED, HEALED)]) == frozenset()
    assert held_rows([entry("shadowed_delete")]) == {ROW}


def test_the_ledger_file_says_what_the_ledger_says(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.meant(INSERT)
    ledger.fault("fault-1", "not_sent", INSERT)
    ledger.fault("fault-2", "doubled", COUNTED)
    ledger.planted(entry("duplicate_uid"))
    settled = ledger.settle()
    assert list(read_entries(tmp_path / "ledger.jsonl")) == settled
    assert [e.accepts for e in settled] == [(VERIFIED,), (VERIFIED, HEALED), ("duplicate_uid",)]
    assert [e.projection for e in settled] == [MESSAGES, "mailbox_counters", MESSAGES]
