"""The stream's side of a run: lineage, and the steps look → confirm → journal → repair → verify.

Only the order of the steps is modelled here; every decision is the product's. A look is a generator
that stops between its steps, so that anything may happen there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import UUID

from reconcilers.compare import compare
from reconcilers.confirm import Moment, judge
from reconcilers.errors import Unreachable
from reconcilers.finding import Action, Attempts, Finding, Now, State, Step, advance
from reconcilers.memory import Entry, Memory, deletes_of, memory_of, merged
from reconcilers.model import KeyValue, Kind, Micros, Repair, Report, Row, Slot, Verdict
from reconcilers.plan import plan
from reconcilers.seen import Seen
from reconcilers.writes import Write
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import statement_of
from tests.property.mail import FAMILY, Event, World

PROJECTION = FAMILY.projections[0]


class Outcome(Enum):
    """What becomes of the writes of one repair."""

    APPLIED = "applied"
    APPLIED_BUT_TIMED_OUT = "applied, but timed out"
    TIMED_OUT_THEN_LATE = "timed out, applied later"
    LOST = "timed out, never applied"


@dataclass(frozen=True, slots=True)
class Planned:
    """A repair that was sent: when its confirmation read the projection, and C."""

    slot: Slot
    read_at: Micros
    began: Micros
    kind: Kind
    writes: tuple[Write, ...]


@dataclass(slots=True)
class Lineage:
    """What was seen, as `checkpoints.lineage` wants it; events are taken in a delay after them."""

    watched_since: Micros
    entries: dict[tuple[KeyValue, Slot], Entry] = field(default_factory=dict)
    truth_deletes: dict[tuple[UUID, UUID], set[tuple[tuple[KeyValue | None, ...], Micros]]] = field(
        default_factory=dict
    )
    projection_deletes: dict[Slot, frozenset[Micros]] = field(default_factory=dict)
    taken: int = 0

    def take_in(self, events: list[Event], until: Micros) -> None:
        """The events that came out of the settle window by now."""
        while self.taken < len(events) and events[self.taken].arrived <= until:
            self._take(events[self.taken])
            self.taken += 1

    def _take(self, event: Event) -> None:
        truth = event.table == "imapuidtable"
        if event.messageid is not None and event.uid is not None:
            self.remember(Entry(event.messageid, Slot(event.mailboxid, event.uid), truth))
        if event.deleted_at is None:
            return
        if truth:
            assert event.messageid is not None
            seen = self.truth_deletes.setdefault((event.messageid, event.mailboxid), set())
            seen.add(((event.mailboxid, event.uid), event.deleted_at))
        elif event.uid is not None:
            slot = Slot(event.mailboxid, event.uid)
            deletes = self.projection_deletes.get(slot, frozenset())
            self.projection_deletes[slot] = deletes | {event.deleted_at}

    def remember(self, entry: Entry) -> None:
        """Only what is absent is written."""
        key = (entry.source, entry.slot)
        old = self.entries.get(key)
        if old is not None:
            recorded = old.recorded_at if old.recorded_at is not None else entry.recorded_at
            in_truth = old.in_truth or entry.in_truth
            entry = replace(entry, in_truth=in_truth, recorded_at=recorded)
        self.entries[key] = entry

    def messages_at(self, slot: Slot) -> set[UUID]:
        """The messages ever seen at a slot."""
        return {
            message
            for message, place in self.entries
            if place == slot and isinstance(message, UUID)
        }

    def memory(self, slot: Slot, messages: Iterable[UUID]) -> Memory:
        """The memory of these messages in the slot's mailbox."""
        return merged([self._memory_of(slot, message) for message in messages])

    def _memory_of(self, slot: Slot, message: UUID) -> Memory:
        entries = [entry for entry in self.entries.values() if entry.source == message]
        deletes = deletes_of(self.truth_deletes.get((message, mailbox_of(slot)), ()))
        seen = {
            each: times
            for each, times in self.projection_deletes.items()
            if each.group == slot.group
        }
        return memory_of(slot, message, entries, deletes, seen, self.watched_since)


@dataclass(slots=True)
class Reconciler:
    """One live stream in repair mode."""

    world: World
    lineage: Lineage
    attempts: Attempts = field(default_factory=Attempts)
    findings: dict[Slot, Finding] = field(default_factory=dict)
    ended: list[tuple[Slot, State]] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)
    verdicts: dict[Slot, Verdict] = field(default_factory=dict)
    suspected: dict[Slot, tuple[Kind, Micros]] = field(default_factory=dict)

    def look(self, slot: Slot, batch: str, outcome: Outcome) -> Iterator[str]:
        """Steps 3 to 6 for one slot; raises `Unreachable` where a write timed out."""
        climate = self.world.climate
        self.lineage.take_in(self.world.events, self.world.now - climate.delay - climate.window)
        actual = self.read_projection(slot)
        seen = self.read_truth(slot, actual)
        if compare(FAMILY, PROJECTION, seen) is None and slot not in self.findings:
            self.verdicts.pop(slot, None)
            return
        yield "suspected"
        began = self.world.now
        read_at, seen = yield from self.confirm(slot)
        moment = Moment(began, self.world.climate.delay)
        verdict = judge(FAMILY, PROJECTION, seen, moment)
        self.verdicts[slot] = verdict
        now = Now(batch, began)
        step = advance(self.findings.get(slot), verdict, seen, now, self.attempts)
        repair = self.take(step, verdict, seen, moment, batch)
        if repair is None:
            return
        self.planned.append(Planned(slot, read_at, began, *repair))
        yield "journalled"
        self.send(slot, repair[1], outcome)

    def confirm(self, slot: Slot) -> Generator[str, None, tuple[Micros, Seen]]:
        """Step 5: the projection with write times first, the truth second."""
        read_at = self.world.now
        actual = self.read_projection(slot)
        yield "projection read"
        seen = self.read_truth(slot, actual)
        yield "truth read"
        return read_at, seen

    def read_projection(self, slot: Slot) -> Row | None:
        return self.world.projection.read((mailbox_of(slot), uid_of(slot)))

    def read_truth(self, slot: Slot, actual: Row | None) -> Seen:
        """All truth rows that are known to claim the slot; what is read is remembered."""
        messages = self.lineage.messages_at(slot)
        named = actual.get("messageid") if actual is not None else None
        if isinstance(named, UUID):
            messages.add(named)
        rows = [row for message in messages for row in self.world.truth_rows(message)]
        places = [(row, _place(row)) for row in rows]
        memory = self.lineage.memory(slot, messages)
        for row, place in places:
            message = row.get("messageid")
            assert isinstance(message, UUID)
            self.lineage.remember(
                Entry(message, Slot(mailbox_of(place), uid_of(place)), True, self.world.now)
            )
        return Seen(
            slot,
            actual,
            tuple(row for row, place in places if place == slot),
            frozenset(messages),
            memory,
            frozenset(
                place
                for row, place in places
                if place.group == slot.group and not _outlived(row, memory)
            ),
            self.extra_before(slot),
        )

    def extra_before(self, slot: Slot) -> Kind | None:
        """What a look found here, if it is at least a delay ago (the key has come back since)."""
        found = self.suspected.get(slot)
        long_ago = found is not None and found[1] <= self.world.now - self.world.climate.delay
        return found[0] if found is not None and long_ago else None

    def take(
        self, step: Step, verdict: Verdict, seen: Seen, moment: Moment, batch: str
    ) -> tuple[Kind, tuple[Write, ...]] | None:
        """Bring the journal to where the step says; the writes to send, if any."""
        slot, previous = seen.slot, self.findings.get(seen.slot)
        difference = compare(FAMILY, PROJECTION, seen)
        if difference is None:
            self.suspected.pop(slot, None)
        elif self.suspected.get(slot, (None, 0))[0] != difference.kind:
            self.suspected[slot] = (difference.kind, moment.began)
        if step.ends_as is not None:
            self.ended.append((slot, step.ends_as))
            self.findings.pop(slot, None)
        match step.action:
            case Action.REPORT:
                assert isinstance(verdict, Report)
                self.report(slot, verdict, moment)
            case Action.STICK:
                assert previous is not None
                self.findings[slot] = replace(previous, state=State.STUCK)
            case Action.REPAIR:
                assert isinstance(verdict, Repair)
                writes = plan(PROJECTION, seen, verdict.difference, moment, step.attempt)
                if isinstance(writes, Report):
                    self.verdicts[slot] = writes
                    self.report(slot, writes, moment)
                    return None
                self.findings[slot] = replace(
                    _finding(slot, verdict.difference.kind, State.INTENDED, moment),
                    attempts=step.attempt + 1,
                    batch=batch,
                    tried_at=moment.began,
                    before=seen.actual,
                    writes=writes,
                )
                return verdict.difference.kind, writes
            case _:
                pass
        return None

    def report(self, slot: Slot, report: Report, moment: Moment) -> None:
        self.findings[slot] = _finding(slot, report.kind, State.REPORTED, moment)

    def send(self, slot: Slot, writes: tuple[Write, ...], outcome: Outcome) -> None:
        """Step 6: the writes of one repair are one statement to one row, so one outcome."""
        if outcome is Outcome.TIMED_OUT_THEN_LATE:
            self.world.later(self.world.climate.delay, lambda: self.apply(slot, writes))
        elif outcome is not Outcome.LOST:
            self.apply(slot, writes)
        if outcome is not Outcome.APPLIED:
            raise Unreachable("no answer came in time")

    def apply(self, slot: Slot, writes: tuple[Write, ...]) -> None:
        for write in writes:
            statement = statement_of(write)
            self.world.projection.apply(statement)
            self.world.projection_event(slot, statement)


def _outlived(truth: Row, memory: Memory) -> bool:
    return any(
        abs(written - deleted) <= Moment(0, 0).delete_clock_tolerance
        for deleted in memory.range_deletes
        for written in truth.written.values()
    )


def _place(row: Row) -> Slot:
    mailbox, uid = row.get("mailboxid"), row.get("uid")
    assert isinstance(mailbox, UUID)
    assert isinstance(uid, int)
    return Slot(mailbox, uid)


def _finding(slot: Slot, kind: Kind, state: State, moment: Moment) -> Finding:
    return Finding(
        family=FAMILY.name,
        projection=PROJECTION.name,
        slot=slot,
        source=None,
        kind=kind,
        state=state,
        sentence="",
        found_at=moment.began,
    )
