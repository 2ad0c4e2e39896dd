"""What a sweep reads on a worker around what a server fails to read, and where it reads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import KeyValue, Kind, Micros, Slot, Suspect, Wake
from reconcilers.words.tokens import TokenRange
from streaming.again import glanced_rows as module
from streaming.again.fingerprints import KeptFingerprints
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.scan import Scanner, Scanning, sweep_task
from streaming.pipeline.worker import BatchLook
from tests.builders.glances import glance_of
from tests.builders.rows import COMPLETE, FAMILY, SCHEMA
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.no_past import HandsOver
from tests.fakes.raw_tables import RawMemoryLineage, RawMemoryTables, shape_of

TOKENS = TokenRange(0, 2**54)
MOST = 500
"""Reads; halving a whole range down to each of its tokens would never end."""


@dataclass
class Scans:
    """Of the index of deleted messages, which is empty; ``fails`` says where it cannot be read."""

    fails: Callable[[TokenRange], bool]
    reads: int = 0

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        self.reads += 1
        assert self.reads < MOST
        if self.fails(tokens):
            raise ReadFailed("too many tombstones")
        yield from ()

    def token(self, partition: RawCell) -> int:
        raise AssertionError(partition)

    def sweep(self) -> SweptPiece:
        job: Any = SimpleNamespace(
            family=MESSAGE, connections=lambda: SimpleNamespace(glance=object())
        )
        found = SweptPiece(Piece("messagedeleted", range(1), 1, 5_000))
        nothing = KeptFingerprints(Path("none"), 1)
        scanning = Scanning(job, lambda _: self, lambda _: HandsOver(), nothing, nothing)
        Scanner(scanning).sweep(found.piece.tokens, found)
        return found


def ids(number: int) -> UUID:
    return UUID(f"{number:08}-0000-1000-8000-000000000001")


def kept_in(folder: Path) -> KeptFingerprints:
    """What the scans of one sweep tell each other."""
    folder.mkdir()
    return KeptFingerprints(folder, 8)


class OneMailbox:
    """Scans of messages that are right in both tables; ``marked``: rows that were counted."""

    def __init__(self, messages: int, folder: Path) -> None:
        self.expected, self.compared = (kept_in(folder / each) for each in ("expected", "compared"))
        self.shape = shape_of(FAMILY)
        self.tables = RawMemoryTables(FAMILY, SCHEMA)
        self.lineage = MemoryLineage()
        self.looked: list[Wake] = []
        self.marked = self.asked = 0
        self.differing: set[int] = set()
        for uid in range(1, messages + 1):
            message = {**COMPLETE, "messageid": ids(uid), "mailboxid": ids(99), "uid": uid}
            for table in (FAMILY.truth.table, FAMILY.listing.table):
                self.tables.put(table, **message)
        self.entries = [
            Entry(ids(uid), Slot(ids(99), uid), in_truth=True, recorded_at=1)
            for uid in range(1, messages + 1)
        ]
        self.lineage.remember(self.entries)

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        columns = self.shape.truth if table == FAMILY.truth.table else self.shape.listing
        yield [tuple(row.get(name) for name in columns) for row in self.tables.rows[table]]

    def token(self, partition: RawCell) -> int:
        return 1

    def sweep(self, table: str, *, ahead: bool = False) -> SweptPiece:
        (found,) = self.sweep_all(table, ahead=ahead)
        return found

    def sweep_all(self, *tables: str, ahead: bool = False) -> list[SweptPiece]:
        memory = RawMemoryLineage(FAMILY, self.lineage)
        ours = SimpleNamespace(
            glance=glance_of(FAMILY, self.tables, memory).glance,
            lineage=SimpleNamespace(watching=self.watching, remember=self.lineage.remember),
        )
        job: Any = SimpleNamespace(
            family=FAMILY,
            connections=lambda: ours,
            settings=SimpleNamespace(stream=SimpleNamespace(delay=5)),
        )
        # of other ranges than the fingerprints
        pieces = [Piece(table, range(3), 3, 5_000, ahead) for table in tables]
        scanning = Scanning(
            job, lambda _: self, lambda _: HandsOver(), self.expected, self.compared
        )
        return list(sweep_task(scanning)(pieces))

    def watching(self) -> None:
        self.asked += 1

    def look(self, wakes: list[Wake], found: BatchLook, _now: Micros) -> None:
        self.looked += wakes
        slots = [each.slot for each in wakes if each.slot is not None]
        found.suspects += [
            Suspect(each, frozenset(), Kind.DIFFERING_CELLS, "messages")
            for each in slots
            if each.key[1] in self.differing
        ]

    def mark(self, keys: list[tuple[KeyValue, ...]]) -> None:
        self.marked += len(keys)


@pytest.fixture
def mailbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneMailbox:
    made = OneMailbox(10, tmp_path)
    monkeypatch.setattr(module, "look_at", lambda _job, _apart, *of: made.look(*of))
    monkeypatch.setattr(module, "mark_counted", lambda _job, keys: made.mark(list(keys)))
    return made


def test_of_the_listing_only_what_the_truth_did_not_show_to_be_right_is_compared(
    mailbox: OneMailbox,
) -> None:
    truth, listing = FAMILY.truth.table, FAMILY.listing.table
    assert mailbox.sweep(truth).rows == 10
    assert mailbox.looked == []
    mailbox.tables.rows[listing][3]["modseq"] = bytes(8)  # changed since
    mailbox.tables.read.clear()
    mailbox.sweep(listing)
    assert [wake.key for wake in mailbox.looked] == [(ids(99), 4)]
    assert mailbox.marked == 10, "what counts rows of the listing counts all"

    mailbox.tables.read.clear()
    mailbox.tables.rows[listing][3]["modseq"] = mailbox.tables.rows[truth][3]["modseq"]
    mailbox.sweep(listing)
    assert mailbox.tables.read == [], "nothing that is right is read again"


def test_of_the_truth_only_what_the_listing_did_not_tell_ahead_is_read_elsewhere(
    mailbox: OneMailbox,
) -> None:
    truth, listing = FAMILY.truth.table, FAMILY.listing.table
    ahead = mailbox.sweep(listing, ahead=True)
    assert (ahead.rows, ahead.suspects, mailbox.looked, mailbox.marked) == (10, [], [], 0)
    assert truth not in mailbox.tables.read

    mailbox.tables.read.clear()
    assert mailbox.sweep(truth).rows == 10
    mailbox.sweep(listing)
    assert (mailbox.tables.read, mailbox.looked) == ([], []), "nothing is read but by scans"
    assert mailbox.marked == 10

    mailbox.tables.rows[truth][3]["modseq"] = bytes(8)  # changed since
    mailbox.sweep(truth)
    assert [wake.key for wake in mailbox.looked] == [(ids(99), 4)]


def test_what_a_look_found_right_in_the_truth_is_not_looked_at_in_the_listing(
    mailbox: OneMailbox,
) -> None:
    """An entry that expires is renewed by a look."""
    mailbox.lineage.expire(mailbox.entries)
    mailbox.differing = {4}
    mailbox.sweep(FAMILY.truth.table)
    assert len(mailbox.looked) == 10
    mailbox.looked.clear()
    mailbox.tables.rows[FAMILY.listing.table][6]["modseq"] = bytes(8)  # changed since
    mailbox.sweep(FAMILY.listing.table)
    assert [wake.key for wake in mailbox.looked] == [(ids(99), 4), (ids(99), 7)]
    assert mailbox.marked == 10


def test_of_a_piece_without_rows_nothing_else_is_read(tmp_path: Path) -> None:
    empty = OneMailbox(0, tmp_path)
    for table in (FAMILY.truth.table, FAMILY.listing.table):
        empty.tables.rows[table] = []
        assert empty.sweep(table).rows == 0
    assert (empty.tables.read, empty.asked) == ([], 0)


def test_what_is_not_remembered_is_not_told_ahead(mailbox: OneMailbox) -> None:
    mailbox.lineage = MemoryLineage()
    mailbox.sweep(FAMILY.listing.table, ahead=True)
    mailbox.tables.read.clear()
    mailbox.sweep(FAMILY.truth.table)
    assert FAMILY.listing.table in mailbox.tables.read


def test_a_first_sweep_records_what_is_right_without_a_look(
    mailbox: OneMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox.lineage, times = MemoryLineage(), iter(range(100, 200))
    monkeypatch.setattr(module, "now_micros", lambda: next(times))
    mailbox.tables.rows[FAMILY.listing.table][3]["modseq"] = bytes(8)
    mailbox.sweep(FAMILY.truth.table)
    assert [wake.key for wake in mailbox.looked] == [(ids(99), 4)]
    assert mailbox.tables.read == [FAMILY.listing.table]
    recorded = mailbox.lineage.of_sources([each.source for each in mailbox.entries])
    assert recorded == {
        each.source: [replace(each, recorded_at=100)]
        for each in mailbox.entries
        if each.slot.key[1] != 4
    }


def test_rows_are_recorded_at_a_time_before_their_page_was_requested(
    mailbox: OneMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page is requested when the one before it is handed out."""
    clock, requested, recorded = count(), dict[int, int](), list[Entry]()
    monkeypatch.setattr(module, "now_micros", lambda: next(clock))
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 1)
    (whole,) = mailbox.pages(FAMILY.truth.table, TOKENS, 1)

    def pages(table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        requested[1] = next(clock)
        for uid, row in enumerate(whole, start=1):
            requested[uid + 1] = next(clock)
            yield [row]

    monkeypatch.setattr(mailbox, "pages", pages)
    mailbox.lineage = MemoryLineage()
    monkeypatch.setattr(mailbox.lineage, "remember", recorded.extend)
    mailbox.sweep(FAMILY.truth.table)
    assert len(recorded) == 10
    before = [requested[int(each.slot.key[1])] - (each.recorded_at or 0) for each in recorded]
    assert min(before) > 0, "never later"
    assert max(before[2:]) <= 3, "and not much earlier"


@pytest.mark.parametrize("token", [1, 77, 2**53, 2**54 - 1])
def test_around_a_token_that_cannot_be_read_all_others_are(token: int) -> None:
    scans = Scans(lambda tokens: tokens.after < token <= tokens.until)
    assert [tokens for tokens, _ in scans.sweep().unread] == [TokenRange(token - 1, token)]


def test_a_table_that_cannot_be_read_at_all_is_an_outage_and_not_halved() -> None:
    with pytest.raises(ReadFailed):
        Scans(lambda tokens: True).sweep()


def test_a_table_that_refuses_ends_its_own_pieces_only(
    mailbox: OneMailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = mailbox.pages

    def refuses(table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        if table == FAMILY.listing.table:
            raise Refused("no SELECT permission")
        yield from read(table, tokens, most)

    monkeypatch.setattr(mailbox, "pages", refuses)
    refused, good = mailbox.sweep_all(FAMILY.listing.table, FAMILY.truth.table)
    assert (str(refused.failed), refused.refused, refused.rows) == ("no SELECT permission", True, 0)
    assert (good.failed, good.refused, good.rows) == (None, False, 10)
