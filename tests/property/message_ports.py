"""What the product reads and writes of messages, over a `World`: anything may happen in each call.

`Kept` outlives the processes of the product; `Ports` are those of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from checkpoints.lineage import Delete
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Wake
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.property.cells import statement_of
from tests.property.faults import Outcome
from tests.property.mail import FAMILY, Event, World

PROJECTION = FAMILY.listing


@dataclass(frozen=True, slots=True)
class Planned:
    """A repair that was journalled: when its confirmation read the projection, and C.

    ``source`` is the message that its row named, None where it named none. ``kept``: its user has
    not expunged the row. ``accepted``: a person has let it be written.
    """

    slot: Slot
    read_at: Micros
    began: Micros
    kind: Kind
    writes: tuple[Write, ...]
    source: object
    kept: bool
    accepted: bool


@dataclass(slots=True)
class Kept:
    """The stores and the topics, and what the test takes down of a run.

    ``published`` are the keys on the topic of suspects, with their times; ``taken`` is how many
    events have been looked at. ``stop`` lets the world go on: it is called in each port, may do
    anything there, look at other slots too, and may raise `CrashError`.
    """

    world: World
    stop: Callable[[], None]
    lineage: KeptLineage = field(init=False)
    journal: KeptJournal = field(init=False)
    published: list[tuple[Micros, Wake]] = field(default_factory=list)
    taken: int = 0
    read_at: dict[Slot, Micros] = field(default_factory=dict)
    planned: list[Planned] = field(default_factory=list)
    repairs: dict[Slot, Finding] = field(default_factory=dict)
    planned_of_indexes: list[Planned] = field(default_factory=list)
    ended: list[tuple[Slot, State]] = field(default_factory=list)
    misread: list[str] = field(default_factory=list)
    """Confirmations that read in the wrong order."""

    def __post_init__(self) -> None:
        self.lineage, self.journal = KeptLineage(self), KeptJournal(self)
        self.lineage.watch_from(self.world.now - 1 - self.world.climate.delay // 2)

    def lose_events(self) -> None:
        """All that nobody has taken yet never comes, and that is known: watching begins anew."""
        del self.world.events[self.taken :]
        self.lineage.watch_from(self.world.now)

    def settled(self, until: Micros) -> list[Wake]:
        """The keys of the events that have come out of the settle window and are not taken."""
        found = []
        for event in self.world.events[self.taken :]:
            if event.arrived > until:
                break
            found.append(_wake(event))
        return found

    def came_round(self, slots: Iterable[Slot], until: Micros) -> list[tuple[Micros, Wake]]:
        """The published keys, of these slots or of none, that have come out of the window."""
        wanted = set(slots)
        return [
            (at, wake)
            for at, wake in self.published
            if at <= until and (wake.slot is None or wake.slot in wanted)
        ]


def _wake(event: Event) -> Wake:
    deleted = event.deleted_at is not None
    return Wake(
        key=(event.mailboxid, event.uid),
        source=event.messageid,
        deleted_from=event.table if deleted else None,
        deleted_at=event.deleted_at,
        from_truth=event.table == FAMILY.truth.table,
    )


class KeptLineage(MemoryLineage):
    """The same for all processes; each may die between two writes."""

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        self._kept = kept

    def remember(self, entries: Iterable[Entry]) -> None:
        self._kept.stop()
        super().remember(entries)

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        self._kept.stop()
        super().remember_deletes(deletes)


class KeptJournal(MemoryJournal):
    """The same for all processes, on the world's time; what is planned is taken down."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(lambda: kept.world.now)
        self._kept = kept
        self._now: dict[tuple[str, Slot], Finding] = {}

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        """As they were written: that the codec gives them back so is tested elsewhere."""
        places = {slot: (projection, slot) for slot in slots}
        open_ones = {slot: self._now[at] for slot, at in places.items() if at in self._now}
        return {slot: self._with_accepted(found) for slot, found in open_ones.items()}

    def touch(self, finding: Finding) -> None:
        super().touch(finding)
        self._now[finding.projection, finding.slot] = finding

    def put(self, finding: Finding) -> None:
        kept = self._kept.world.keeps(finding.slot)  # as it is decided
        self._kept.stop()
        if finding.kind is Kind.MISSING_ROW:
            self._kept.world.found(finding.slot, finding.tried_at)
        if finding.state is State.INTENDED:
            slot, kind = finding.slot, finding.kind
            read_at = self._kept.read_at[slot]
            writes = tuple(each for each in finding.writes if isinstance(each, Write))
            row = self._kept.world.projection.read(slot.key)
            source = None if row is None else row.get("messageid")
            planned = Planned(
                *(
                    slot,
                    read_at,
                    finding.tried_at,
                    kind,
                    writes,
                    source,
                    kept,
                    bool(finding.accepted),
                )
            )
            of_listing = finding.projection == PROJECTION.name
            if of_listing:
                self._kept.repairs[slot] = finding
            (self._kept.planned if of_listing else self._kept.planned_of_indexes).append(planned)
        super().put(finding)

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        self._kept.stop()
        self._kept.ended.append((finding.slot, end))
        super().close(finding, end, at)
        self._now.pop((finding.projection, finding.slot), None)

    def _append(self, finding: Finding, state: State, at: Micros) -> None:
        """Nobody reads the log of these runs."""


@dataclass(slots=True)
class Ports:
    """The mail server's tables for one look; ``outcome`` is what becomes of its writes."""

    kept: Kept
    outcome: Outcome = Outcome.APPLIED
    _confirming: set[Slot] = field(default_factory=set)
    _truth_read: bool = False

    def clock(self) -> Micros:
        return self.kept.world.now

    # --- what is looked at

    def truth_rows(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.kept.stop()
        found = self._truths(sources)
        return {each: tuple(Row(row.cells) for row in rows) for each, rows in found.items()}

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        return {slot: Row(row.cells) for slot, row in self._rows(projection, slots).items()}

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        for _, row in self.kept.world.table_of(projection).rows(group):
            uid = row.get("uid")
            assert isinstance(uid, int)
            yield Slot(group, uid), projection.source_of(row)

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        raise AssertionError("no mailbox of these tests is that large")

    # --- what is confirmed

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self.kept.stop()
        if self._truth_read:
            self.kept.misread.append("the projection was read after the truth")
        slots = list(slots)
        for slot in slots:
            if slot not in self._confirming:
                self.kept.read_at[slot] = self.kept.world.now
        self._confirming.update(slots)
        return self._rows(projection, slots)

    def truth_serially(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.kept.stop()
        self._truth_read = True
        if not self._confirming:
            self.kept.misread.append("the truth was read before the projection")
        return self._truths(sources)

    def truth_with_times(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.kept.stop()
        return self._truths(sources)

    def _rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        read = self.kept.world.table_of(projection).read
        rows = {slot: read(slot.key) for slot in slots}
        return {slot: row for slot, row in rows.items() if row is not None}

    def _truths(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        found = {each: tuple(self.kept.world.truth_rows(each)) for each in sources}
        return {each: rows for each, rows in found.items() if rows}

    # --- what is written

    def apply(self, writes: Sequence[Write]) -> None:
        """The writes of one repair are one statement to one row, so they have one outcome."""
        self.kept.stop()
        world, sent = self.kept.world, tuple(writes)
        if self.outcome is Outcome.TIMED_OUT_THEN_LATE:
            world.later(world.climate.delay, lambda: _arrive(world, sent))
        elif self.outcome is not Outcome.LOST:
            _arrive(world, sent)
        self.kept.stop()
        if self.outcome is not Outcome.APPLIED:
            raise Unreachable("no answer came in time")

    def publish(self, wakes: Iterable[Wake]) -> None:
        """As they come back: looked at again, for the listing where they name no projection."""
        for wake in wakes:
            name = PROJECTION.name if wake.projection is None else wake.projection
            again = replace(wake, looked_again=True, from_truth=False, projection=name)
            self.kept.published.append((self.kept.world.now, again))


def _arrive(world: World, writes: Iterable[Write]) -> None:
    for write in writes:
        world.repair(write.projection, write.slot, statement_of(write))
