"""Users of a mail server, in James's order of statements, on a logical clock (µs).

`World` holds the truth, the projection, and the projection as it would be without the reconciler:
users never read the projection here, so that one is exactly the run without it. Statements to the
projection may be lost, late, or sent twice; every applied statement becomes an event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from uuid import UUID

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.rows.seen import is_incomplete
from reconcilers.words.millis import Millis
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Value
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import NO_ELEMENTS, Delete, Elements, Insert, Statement, Table, Update

MILLISECOND: Micros = 1_000
SECOND: Micros = 1_000_000
START: Micros = 1_800_000_000 * SECOND
UUID_EPOCH_100NS = 0x01B21DD213814000

CELLS = {
    "modseq": "bigint",
    "flagseen": "boolean",
    "flagflagged": "boolean",
    "userflags": "set<text>",
    "internaldate": "timestamp",
    "save_date": "timestamp",
}
SCHEMA = {
    "imapuidtable": {"messageid": "timeuuid", "mailboxid": "timeuuid", "uid": "bigint"} | CELLS,
    "messageidtable": {"mailboxid": "timeuuid", "uid": "bigint", "messageid": "timeuuid"} | CELLS,
}
FAMILY: Family = bind(keeping(MESSAGE, ()), SCHEMA)
PLAIN = tuple(name for name in CELLS if name != "userflags")
SYSTEM_FLAGS = ("flagseen", "flagflagged")
DATE = Millis(1_793_491_200_000)


def time_uuid(at: Micros, node: int) -> UUID:
    """A time-based UUID made at this time."""
    ticks = at * 10 + UUID_EPOCH_100NS
    fields = (ticks & 0xFFFFFFFF, (ticks >> 32) & 0xFFFF, (ticks >> 48) | 0x1000, 0x80, 0, node)
    return UUID(fields=fields)


MAILBOXES = tuple(time_uuid(START - SECOND, node) for node in (1, 2))


def truth_table() -> Table:
    """An empty `imapUidTable`."""
    return Table(("messageid", "mailboxid", "uid"), PLAIN, ("userflags",))


def projection_table() -> Table:
    """An empty `messageIdTable`."""
    return Table(("mailboxid", "uid"), ("messageid", *PLAIN), ("userflags",))


class Fate(Enum):
    """What becomes of a statement to the projection."""

    PROMPT = "prompt"
    LATE = "late"
    LOST = "lost"
    SENT_TWICE = "sent twice"
    """Applied, reported as timed out, and sent again a little later with a new write time."""


@dataclass(frozen=True, slots=True)
class Climate:
    """The delay D, how far clocks differ, how late a statement may arrive: late + skew < D.

    ``window`` is how long after D an event may come out of the settle window (W and capture).
    """

    delay: Micros
    window: Micros
    skew: Micros
    late: Micros


@dataclass(frozen=True, slots=True)
class Event:
    """What change capture tells of one applied statement: who may have changed, and deletes."""

    arrived: Micros
    table: str
    messageid: UUID | None
    mailboxid: UUID | None
    uid: int | None
    deleted_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Touch:
    """The newest user's statement on a cell: its write time, and when it was issued."""

    at: Micros
    issued: Micros


@dataclass(slots=True)
class World:
    """Tables, clocks, statements on their way, and users."""

    climate: Climate
    now: Micros = START
    ballot_ahead: Micros = 0
    truth: Table = field(default_factory=truth_table)
    projection: Table = field(default_factory=projection_table)
    without_us: Table = field(default_factory=projection_table)
    events: list[Event] = field(default_factory=list)
    touched: dict[Slot, dict[str, Touch]] = field(default_factory=dict)
    added: dict[Slot, Micros] = field(default_factory=dict)
    expunged: dict[Slot, Micros] = field(default_factory=dict)
    """When its user last added a row, and last expunged it."""
    struck: dict[Slot, Micros] = field(default_factory=dict)
    lost: dict[Slot, Micros] = field(default_factory=dict)
    """When it was struck from the listing alone, and when the truth last lost it."""
    messages: list[UUID] = field(default_factory=list)
    slots: dict[Slot, UUID] = field(default_factory=dict)
    _in_flight: list[tuple[Micros, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _ballots: dict[UUID, Micros] = field(default_factory=dict)

    # --- time ---------------------------------------------------------------------------------

    def pass_time(self, duration: Micros) -> None:
        """Move the clock on; what arrives in between is applied."""
        until = self.now + duration
        while self._in_flight and self._in_flight[0][0] <= until:
            arrival, _, apply = heapq.heappop(self._in_flight)
            self.now = max(self.now, arrival)
            apply()
        self.now = until

    def later(self, delay: Micros, action: Callable[[], None]) -> None:
        """Do something when this much time has passed."""
        heapq.heappush(self._in_flight, (self.now + delay, next(self._numbers), action))

    # --- users --------------------------------------------------------------------------------

    def append(self, mailbox: UUID, message: UUID | None, clock: Micros, fate: Fate) -> None:
        """Append a new message, or copy one (into its own mailbox too)."""
        number = next(self._numbers)
        if message is None:
            message = time_uuid(self.now, number)
            self.messages.append(message)
        self._add(Slot(mailbox, number), message, clock, fate)

    def re_add(self, slot: Slot, clock: Micros, fate: Fate) -> None:
        """Add a message again at the UID that it had.

        James never gives a UID out again. What restores tables from a copy may; that takes more
        than 2 D, and no statement is in flight then.
        """
        gone = max(self.expunged.get(slot, 0), self.struck.get(slot, 0)) + self.climate.late
        if self._in_flight or self.now <= gone + 2 * (self.climate.delay + self.climate.skew):
            return
        self._add(slot, self.slots[slot], clock, fate)

    def keeps(self, slot: Slot) -> bool:
        """Whether its user added the row and did not expunge it, as far as clocks tell.

        James deletes a row of the listing for an expunge only. So a row that is struck from it
        counts as expunged until the reconciler has `found` it in the truth.
        """
        expunged = max(self.expunged.get(slot, 0), self.struck.get(slot, 0))
        unsure = 2 * self.climate.skew + MILLISECOND
        return slot in self.added and self.added[slot] > expunged + unsure

    def found(self, slot: Slot, at: Micros) -> None:
        """It is in the truth, and so is added again: nobody wished that it was struck.

        That is known when the event of the delete has come, and a read finds the row after it.
        """
        if at > self.struck.get(slot, 0) + self.climate.delay + self.climate.window:
            self.struck.pop(slot, None)

    def _add(self, slot: Slot, message: UUID, clock: Micros, fate: Fate) -> None:
        self.slots[slot] = message
        cells: dict[str, Value] = {
            "modseq": next(self._numbers),
            "flagseen": False,
            "flagflagged": False,
            "internaldate": DATE,
            "save_date": DATE if uid_of(slot) % 2 else None,
        }
        key = (message, mailbox_of(slot), uid_of(slot))
        if self.truth.read(key) is not None:
            return
        self.added[slot] = self.now
        at = self._ballot(message)
        self.truth.apply(Insert(key, at, cells | {"userflags": frozenset({"new"})}))
        if self.truth.read(key) is None:  # a delete of another row has a clock that is ahead
            self.lost[slot] = self.now
        self._truth_event(message, mailbox_of(slot), uid_of(slot))
        there = {name: value for name, value in cells.items() if value is not None}
        added = {"userflags": frozenset({"new"})}
        self._project(slot, clock, fate, there | {"messageid": message}, (added, NO_ELEMENTS))

    def flag(self, slot: Slot, wanted: int, clock: Micros, fate: Fate) -> None:
        """Set flags to the bits of ``wanted`` if nobody was faster; the projection gets changes."""
        message = self.slots[slot]
        row = self.truth.read((message, mailbox_of(slot), uid_of(slot)))
        if row is None:
            return
        system = {name: bool(wanted >> bit & 1) for bit, name in enumerate(SYSTEM_FLAGS)}
        user = frozenset(name for bit, name in ((2, "new"), (3, "work")) if wanted >> bit & 1)
        had = row.get("userflags")
        assert isinstance(had, frozenset)
        modseq: dict[str, Value] = {"modseq": next(self._numbers)}
        deltas = {"userflags": user - had}, {"userflags": had - user}
        key = (message, mailbox_of(slot), uid_of(slot))
        self.truth.apply(Update(key, self._ballot(message), modseq | system, *deltas))
        self._truth_event(message, mailbox_of(slot), uid_of(slot))
        changed = {name: flag for name, flag in system.items() if row.get(name) is not flag}
        self._project(slot, clock, fate, modseq | changed, deltas)

    def sees(self, slot: Slot) -> bool:
        """Whether a session may expunge it: either table has it, or another has just deleted it.

        James reads a row before it deletes it, so no session deletes what is long gone. What lacks
        cells is no row to James.
        """
        key = (mailbox_of(slot), uid_of(slot))
        true, listed = self.truth.read((self.slots[slot], *key)), self.projection.read(key)
        readable = true is not None and not is_incomplete(FAMILY, true)
        shown = listed is not None and listed.get("messageid") is not None
        return readable or shown or self.now - self.expunged.get(slot, 0) <= self.climate.late

    def expunge(self, slot: Slot, clock: Micros, fate: Fate, truth_fate: Fate) -> None:
        """Delete both sides in parallel, the truth by (messageid, mailboxid) without UID.

        Where the truth's delete fails, James says so to its user: the row is struck, no more.
        """
        message = self.slots[slot]
        failed = truth_fate is Fate.LOST
        if not failed or fate is not Fate.LOST:
            (self.struck if failed else self.expunged)[slot] = self.now

        def delete_truth(at: Micros) -> Callable[[], None]:
            def arrive() -> None:
                before = self._slots_of(message)
                self.truth.apply(Delete((message, mailbox_of(slot)), at))
                self.lost |= dict.fromkeys(before - self._slots_of(message), self.now)
                self._truth_event(message, mailbox_of(slot), None, at)

            return arrive

        at, late = self.now + clock, self.climate.late
        if truth_fate is not Fate.LOST:
            first = late if truth_fate is Fate.LATE else 10 * MILLISECOND
            self.later(first, delete_truth(at))
        if truth_fate is Fate.SENT_TWICE:
            self.later(late, delete_truth(at + late - 10 * MILLISECOND))
        self._send(slot, fate, clock, lambda at: Delete((mailbox_of(slot), uid_of(slot)), at))

    def _slots_of(self, message: UUID) -> set[Slot]:
        return {FAMILY.truth.slot_of(row) for row in self.truth_rows(message)}

    def purge(self, message: UUID, clock: Micros) -> None:
        """Delete a message's whole truth partition, of which no mailbox is told."""
        at = self.now + clock
        self.expunged |= {slot: self.now for slot, each in self.slots.items() if each == message}
        self.truth.apply(Delete((message,), at))
        self._truth_event(message, None, None, at)

    def old_message(self) -> UUID:
        """The id of a message that was made long before the stream began to watch."""
        message = time_uuid(START - 1000 * SECOND, next(self._numbers))
        self.messages.append(message)
        return message

    def plant(self, slot: Slot, shape: int, clock: Micros) -> None:
        """Something that James does not write: a wrong cell, a wrong row, a row marker."""
        key, at = (mailbox_of(slot), uid_of(slot)), self.now + clock
        message = self.slots[slot]
        match shape % 8:
            case 0:
                self._arrive(slot, Update(key, at, {"flagseen": True}), self.now)
            case 1:
                added = {"userflags": frozenset({"stale"})}
                self._arrive(slot, Update(key, at, {"modseq": 1}, added), self.now)
            case 2:
                other = self.messages[shape // 8 % len(self.messages)]
                self._arrive(slot, Update(key, at, {"messageid": other}), self.now)
            case 3:
                self._arrive(slot, Update(key, at, {"internaldate": None, "modseq": 1}), self.now)
            case 4:
                self._arrive(slot, Insert(key, at, {"messageid": message, "modseq": 1}), self.now)
            case 5:
                cells: dict[str, Value] = {"userflags": frozenset({"over"})}
                self._arrive(slot, Update(key, at, cells), self.now)
            case 6:
                self.struck[slot] = self.now
                self._arrive(slot, Delete(key, at), self.now)
            case _:
                wrong = Slot(mailbox_of(slot), next(self._numbers))
                self.slots[wrong] = message
                cells = {"messageid": message, "modseq": 1, "flagseen": True}
                self._arrive(wrong, Update((mailbox_of(wrong), uid_of(wrong)), at, cells), self.now)

    # --- statements ---------------------------------------------------------------------------

    def _ballot(self, message: UUID) -> Micros:
        at = max(self.now + self.ballot_ahead, self._ballots.get(message, 0) + 1)
        self._ballots[message] = at
        return at

    def _project(
        self,
        slot: Slot,
        clock: Micros,
        fate: Fate,
        cells: Mapping[str, Value],
        deltas: tuple[Elements, Elements],
    ) -> None:
        key = (mailbox_of(slot), uid_of(slot))
        self._send(slot, fate, clock, lambda at: Update(key, at, cells, *deltas))

    def _send(
        self, slot: Slot, fate: Fate, clock: Micros, make: Callable[[Micros], Statement]
    ) -> None:
        issued = self.now
        first = make(issued + clock)
        match fate:
            case Fate.PROMPT:
                self._arrive(slot, first, issued)
            case Fate.LATE:
                self.later(self.climate.late, lambda: self._arrive(slot, first, issued))
            case Fate.SENT_TWICE:
                self._arrive(slot, first, issued)
                pause = self.climate.late // 2
                again = make(issued + pause + clock)
                self.later(pause, lambda: self._arrive(slot, again, issued + pause))
            case Fate.LOST:
                pass

    def _arrive(self, slot: Slot, statement: Statement, issued: Micros) -> None:
        self.projection.apply(statement)
        self.without_us.apply(statement)
        touch = Touch(statement.at, issued)
        touches = self.touched.setdefault(slot, {})
        for name in _cells_of(statement):
            if name not in touches or touches[name].at <= touch.at:
                touches[name] = touch
        self.projection_event(slot, statement)

    def table_of(self, projection: Projection) -> Table:
        """Where its rows are."""
        assert not projection.is_index, "this world has none"
        return self.projection

    def repair(self, projection: Projection, slot: Slot, statement: Statement) -> None:
        """A statement of ours arrives."""
        self.table_of(projection).apply(statement)
        self.projection_event(slot, statement)

    def projection_event(self, slot: Slot, statement: Statement) -> None:
        """What change capture tells of a statement to the projection, ours included."""
        messageid, deleted_at = None, None
        if isinstance(statement, Delete):
            deleted_at = statement.at
        elif isinstance(named := statement.cells.get("messageid"), UUID):
            messageid = named
        self.events.append(
            Event(self.now, "messageidtable", messageid, mailbox_of(slot), uid_of(slot), deleted_at)
        )

    def _truth_event(
        self, message: UUID, mailbox: UUID | None, uid: int | None, deleted_at: Micros | None = None
    ) -> None:
        self.events.append(Event(self.now, "imapuidtable", message, mailbox, uid, deleted_at))

    # --- reading ------------------------------------------------------------------------------

    def truth_rows(self, message: KeyValue) -> list[Row]:
        """The truth's partition of a message."""
        return [row for _, row in self.truth.rows(message)]


WHOLE_ROW = "*"
ELEMENTS = ("new", "work", "stale", "over")


def _cells_of(statement: Statement) -> list[str]:
    if isinstance(statement, Delete):
        return [WHOLE_ROW]
    names = list(statement.cells)
    if "userflags" in names:
        names += [f"userflags.{element}" for element in ELEMENTS]
    if isinstance(statement, Update):
        for deltas in (statement.added, statement.removed):
            names += [f"userflags.{element}" for found in deltas.values() for element in found]
    return names
