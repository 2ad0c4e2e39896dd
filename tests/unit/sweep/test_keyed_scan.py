"""The sweep of a family that no glance reads: each range, source and key is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from checkpoints.no_lineage import NoLineage
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.declared.scan import phases_of, scans_of, wakes_of
from reconcilers.declared.truth import source_of
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import KeyValue, Kind, Row, Slot, Wake
from reconcilers.words.tokens import TokenRange, range_of, tokens_of
from streaming.again.fingerprints import KeptFingerprints
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.scan import Scanning, sweep_task
from tests.builders.attachments import ATTACHMENTS, MESSAGE, PDF, REFERENCES, reference_place
from tests.builders.mailbox_family import MAILBOXES
from tests.builders.rights import FROM_EVENTS, SHARED, shown, stored_event
from tests.builders.rows import FAMILY
from tests.fakes.checkpoints.memory import MemoryExpiries
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.no_past import HandsOver

EVENTS, RIGHTS = "eventstore", "usermailboxacl"
ANA, BOB, EVE = "ana", "bob", "eve"
LOST = UUID("66666666-0000-1000-8000-000000000006")
"""A mailbox without a list."""
OTHERS = [
    "DLPDomainConfiguration/example.com",
    str(UUID(int=7)),
    "ABCDEF00-0000-1000-8000-000000000005",
]
"""Partitions of the event store that are no mailbox's: James writes ids in small letters."""
RANGES = 8


@dataclass
class CountedTables(MemoryTables):
    """How often each source and each slot of the listing was read; a source may be ``broken``."""

    sources: Counter[KeyValue] = field(default_factory=Counter)
    slots: Counter[Slot] = field(default_factory=Counter)
    broken: KeyValue | None = None

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        asked = list(messageids)
        self.sources.update(asked)
        if self.broken in asked:
            raise ReadFailed("a list that is not JSON")
        return super().truth_rows(asked)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        asked = list(slots)
        self.slots.update(asked)
        return super().projection_rows(projection, asked)


@dataclass
class Store:
    """Tables with rows at tokens, as they are scanned; ``read`` are the ranges that were read."""

    rows: dict[str, list[RawRow]]
    read: Counter[tuple[str, TokenRange]] = field(default_factory=Counter)
    fails_at: RawCell = None

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        self.read[table, tokens] += 1
        here = [
            row for row in self.rows[table] if tokens.after < self.token(row[0]) <= tokens.until
        ]
        if any(row[0] == self.fails_at for row in here):
            raise ReadFailed("too many tombstones")
        here.sort(key=lambda row: self.token(row[0]))
        for start in range(0, len(here), most):
            yield here[start : start + most]

    def token(self, partition: RawCell) -> int:
        """Partitions one after another, a range apart."""
        order = dict.fromkeys(row[0] for rows in self.rows.values() for row in rows)
        return tokens_of(range(list(order).index(partition) % RANGES + 1), RANGES).until


@dataclass
class Keyspace:
    """Rights of two mailboxes: what the lists say, and what the users' rows say."""

    family: Family = FROM_EVENTS
    tables: CountedTables = field(
        default_factory=lambda: CountedTables(truth=FROM_EVENTS.truth, rows={"user_rights": {}})
    )

    def grant(self, **rights: str) -> None:
        self.tables.truths[SHARED] = (stored_event(0, {}, rights),)

    def show(self, user: str, rights: str, mailboxid: UUID = SHARED) -> None:
        row = shown(user, rights)
        cells = {**row.cells, "mailboxid": mailboxid}
        self.tables.rows["user_rights"][Slot(user, mailboxid)] = Row(cells, row.written)

    def store(self) -> Store:
        lists = [str(SHARED), *OTHERS]
        rows = [(str(user).encode(), box.bytes) for user, box in self._shown()]
        return Store({EVENTS: [(each.encode(),) for each in lists], RIGHTS: list(rows)})

    def _shown(self) -> Iterator[tuple[str, UUID]]:
        for slot in self.tables.rows["user_rights"]:
            user, box = slot.key
            assert isinstance(user, str)
            assert isinstance(box, UUID)
            yield user, box

    def sweep(self, store: Store, table: str, most: int = 5_000) -> SweptPiece:
        ours = SimpleNamespace(
            glance=None,
            tables=self.tables,
            lineage=NoLineage(),
            expiries=MemoryExpiries(),
            tallies=MemoryTallies(),
        )
        settings = SimpleNamespace(
            stream=SimpleNamespace(delay=5),
            tally=SimpleNamespace(chunk=1_000),
            repair=SimpleNamespace(recheck_interval=600),
        )
        job: Any = SimpleNamespace(
            family=self.family, settings=settings, connections=lambda: ours, publish=never
        )
        nothing = KeptFingerprints(Path("none"), RANGES)
        scanning = Scanning(job, lambda _: store, lambda _: HandsOver(), nothing, nothing)
        (found,) = sweep_task(scanning)([Piece(table, range(RANGES), RANGES, most)])
        return found


def never(_wakes: object) -> None:
    raise AssertionError("nothing is put off")


@pytest.fixture
def rights() -> Keyspace:
    """A right that is missing, one that differs, one that is right, and one of a lost list."""
    made = Keyspace()
    made.grant(ana="lr", bob="lrw", eve="l")
    made.show(BOB, "wlr")
    made.show(EVE, "lr")
    made.show("zoe", "l")
    made.show(ANA, "lr", LOST)
    return made


def kinds(found: SweptPiece) -> dict[Slot, Kind | None]:
    return {each.slot: each.kind for each in found.suspects}


def test_each_source_of_the_truth_is_read_once_and_leads_to_all_its_slots(rights: Keyspace) -> None:
    store = rights.store()
    found = rights.sweep(store, EVENTS)
    assert store.read == {(EVENTS, TokenRange()): 1}
    assert rights.tables.sources == {SHARED: 1}
    assert rights.tables.slots == {Slot(user, SHARED): 1 for user in (ANA, BOB, EVE)}
    assert kinds(found) == {
        Slot(ANA, SHARED): Kind.MISSING_ROW,
        Slot(EVE, SHARED): Kind.DIFFERING_CELLS,
    }
    assert (found.rows, found.failed, found.unread) == (1, None, [])


def test_partitions_that_are_no_mailboxs_are_left_out(rights: Keyspace) -> None:
    store = rights.store()
    store.rows[EVENTS] = [(each.encode(),) for each in OTHERS]
    found = rights.sweep(store, EVENTS)
    assert (found.rows, found.suspects, rights.tables.sources) == (0, [], {})


def test_each_row_is_compared_with_the_list_that_its_key_names(rights: Keyspace) -> None:
    store = rights.store()
    found = rights.sweep(store, RIGHTS)
    assert store.read == {(RIGHTS, TokenRange()): 1}
    assert rights.tables.sources == {SHARED: 1, LOST: 1}, "also for three rows of one mailbox"
    assert set(rights.tables.slots.values()) == {1}
    assert kinds(found) == {
        Slot(EVE, SHARED): Kind.DIFFERING_CELLS,
        Slot("zoe", SHARED): Kind.EXTRA_ROW,
        Slot(ANA, LOST): Kind.EXTRA_ROW,
    }
    assert found.rows == 4


def test_a_piece_ends_with_a_range_once_it_has_its_rows(rights: Keyspace) -> None:
    store = rights.store()
    found = rights.sweep(store, RIGHTS, most=2)
    assert found.piece.numbers.stop < RANGES
    read = {each.slot for each in found.suspects}
    assert {range_of(store.token(str(slot.key[0]).encode()), RANGES) for slot in read} <= {
        *found.piece.numbers
    }


def test_around_a_partition_that_cannot_be_scanned_all_others_are(rights: Keyspace) -> None:
    store = rights.store()
    store.fails_at = EVE.encode()
    found = rights.sweep(store, RIGHTS)
    (unread,) = found.unread
    assert unread[0].until == store.token(EVE.encode())
    assert kinds(found).keys() == {Slot("zoe", SHARED), Slot(ANA, LOST)}


def test_a_list_that_cannot_be_read_holds_up_no_other_row(rights: Keyspace) -> None:
    rights.tables.broken = SHARED
    found = rights.sweep(rights.store(), RIGHTS)
    assert {each.slot for each in found.unreadable} == {
        Slot(user, SHARED) for user in (BOB, EVE, "zoe")
    }
    assert kinds(found)[Slot(ANA, LOST)] is Kind.EXTRA_ROW
    (of_list,) = rights.sweep(rights.store(), EVENTS).unreadable
    assert of_list.slot == FROM_EVENTS.known_part(None, SHARED), "as the stream reports it"


# --- what is declared


def test_where_no_lineage_is_filled_all_tables_are_read_together_older_ones_too() -> None:
    assert phases_of(FROM_EVENTS) == ((EVENTS, RIGHTS),)
    assert phases_of(REFERENCES) == (("messagev2", "messagev3", "attachmentmessageid"),)


def test_of_the_truth_the_partitions_are_scanned_and_of_a_projection_the_keys() -> None:
    events, rows = scans_of(FROM_EVENTS)
    assert (events.columns, events.distinct, events.types) == (("aggregateid",), True, ("text",))
    assert (rows.columns, rows.distinct) == (("username", "mailboxid"), False)
    assert rows.types == ("text", "uuid")
    assert [each.types for each in scans_of(REFERENCES)] == [("uuid",), ("uuid",), ("uuid", "text")]
    assert [each.distinct for each in scans_of(FAMILY)] == [False] * len(scans_of(FAMILY))
    assert events.partition_of((b"a",)) == rows.partition_of((b"a", b"b")) == b"a"


def test_a_partition_key_of_several_columns_is_written_as_cassandra_hashes_it() -> None:
    """Its columns may have another order in the family's key."""
    _mailboxes, paths = scans_of(MAILBOXES)
    assert paths.partition == ("namespace", "user")
    row = b"bob", b"#private", b"INBOX"
    assert paths.partition_of(row) == b"\0\x08#private\0" + b"\0\x03bob\0"


def test_where_no_part_of_the_key_is_in_the_truths_a_source_wakes_alone() -> None:
    wakes = wakes_of(REFERENCES)
    woken = wakes["messagev2"]((MESSAGE.bytes,)), wakes["messagev3"]((MESSAGE.bytes,))
    assert set(woken) == {Wake((None, None), MESSAGE, changes=0)}
    uuid, message = reference_place(PDF).key
    assert isinstance(uuid, UUID)
    row = uuid.bytes, str(message).encode()
    assert wakes["attachmentmessageid"](row) == Wake((uuid, message), None, changes=0)
    assert wakes_of(ATTACHMENTS)["attachmentv2"]((uuid.bytes,)) == Wake((uuid,), None, changes=0)


@pytest.mark.parametrize("text", OTHERS)
def test_a_text_that_names_no_mailbox_names_no_source(text: str) -> None:
    truth = FROM_EVENTS.truth
    assert source_of(truth, text) is None
    assert source_of(truth, str(SHARED)) == SHARED
