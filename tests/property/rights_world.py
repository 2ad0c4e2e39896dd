"""A list of rights, its rows, and a mail server that changes them while they are repaired.

The mail server adds an event for each change of the list; its subscribers then write what has
changed, with a client's clock. Such a write may be late or lost. The reconciler is the product's
`Looks` and `Examiner`, which is woken by nothing but the events of these writes, the events of its
own, and the keys that it publishes. Each write is played twice: once with ours, once without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from uuid import UUID

from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.rows.finding import State
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Wake
from tests.builders.rights import SHARED, stored_event
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, NOW, SECOND
from tests.fakes.memory_tables import MemoryTables
from tests.property.cells import Delete, Insert, Statement, Table, Update, statement_of

WINDOW: Micros = 6 * SECOND
MOST_BATCHES = 40
OTHER_LIST = {"eve": "l"}
List = Mapping[str, str]
"""The letters of each name."""
Cell = tuple[KeyValue, str | None]
"""A name and a letter of it; no letter: the row as a whole."""


class Point(Enum):
    """Where a batch can be stopped, in order; then comes what is not stopped."""

    LOOKED = auto()
    PROJECTION_READ = auto()
    CONFIRMED = auto()
    JOURNALLED = auto()
    REPAIRED = auto()
    LATER = auto()


class Sent(Enum):
    """What becomes of a write of ours, or of the mail server."""

    APPLIED = auto()
    LATE = auto()
    LOST = auto()


@dataclass(frozen=True)
class Climate:
    """The clocks (µs ahead of ours), and how late a write arrives at most (µs)."""

    ballots: Micros = 0
    clients: Micros = 0
    late: Micros = 0


@dataclass(frozen=True)
class Touch:
    """A write of the mail server to a cell: when it was sent, and its write time."""

    issued: Micros
    at: Micros


@dataclass
class World:
    """The event store, one table of rows, and the reconciler. ``stop`` is called at each point."""

    family: Family
    written: Callable[[List, List, Micros], Iterable[tuple[Statement, Sequence[Cell]]]]
    climate: Climate = Climate()
    stop: Callable[[Point], None] = lambda _point: None
    ours: Sent = Sent.APPLIED
    lists: list[List] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    touched: dict[Cell, Touch] = field(default_factory=dict)
    writes: list[tuple[Micros, Write]] = field(default_factory=list)
    """Each with the time at which its slot was read."""
    batches: int = 0
    due: list[tuple[Micros, Wake]] = field(default_factory=list)
    arriving: list[tuple[Micros, Statement, dict[Cell, Touch] | None]] = field(default_factory=list)
    """Writes on their way; None: one of ours."""

    def __post_init__(self) -> None:
        self.ground = Ground(family=self.family)
        (projection,) = self.family.projections
        shape = (projection.key, projection.columns, tuple(projection.sets))
        self.table, self.without_us = Table(*shape), Table(*shape)
        self.ground.tables = Stopped(truth=self.family.truth, world=self)

    @property
    def now(self) -> Micros:
        """The time by our clock."""
        return self.ground.now

    # --- the mail server

    def change(self, new: List) -> List:
        """Add the event of a change; returns the list before it."""
        before = self.lists[-1] if self.lists else {}
        at = self.now + self.climate.ballots
        self.events.append(stored_event(len(self.lists), before, new, at))
        self.lists.append(new)
        source = self.family.truth.source
        key = [SHARED if each == source.name else None for each in self.family.truth.slot]
        self.hear(Wake(tuple(key), SHARED, at, from_truth=True))
        return before

    def tell(self, before: List, new: List, sent: Sent = Sent.APPLIED) -> None:
        """Write what has changed to the rows."""
        at = self.now + self.climate.clients
        for statement, cells in self.written(before, new, at):
            if sent is not Sent.LOST:
                late = self.climate.late if sent is Sent.LATE else 0
                touched = dict.fromkeys(cells, Touch(self.now, at))
                self.arriving.append((self.now + late, statement, touched))
        self.arrive()

    def arrive(self) -> None:
        """What has arrived by now stands in the table, and its event is heard of."""
        waiting, self.arriving = self.arriving, []
        for when, statement, touched in waiting:
            if when > self.now:
                self.arriving.append((when, statement, touched))
                continue
            self.table.apply(statement)
            if touched is not None:
                self.without_us.apply(statement)
                self.touched |= touched
            key = statement.prefix if isinstance(statement, Delete) else statement.key
            self.hear(Wake(key, SHARED, statement.at))

    def hear(self, wake: Wake) -> None:
        """Its event comes out of the window a delay later."""
        self.due.append((self.now + DELAY + WINDOW, wake))

    # --- the reconciler

    def batch(self) -> bool:
        """The next batch, of all keys that are due together; False if none is."""
        if not self.due:
            return False
        self.batches += 1
        self.ground.now = max(self.now, min(at for at, _ in self.due))
        self.arrive()
        wakes = [wake for at, wake in self.due if at <= self.now]
        self.due = [each for each in self.due if each[0] > self.now]
        for looked in self.ground.looks(wakes):
            for suspect in looked.suspects:
                self.ground.settle(suspect, after=0)
        for wake in self.ground.published:
            self.hear(replace(wake, looked_again=True, from_truth=False))
        self.ground.published.clear()
        return True

    def rest(self) -> None:
        """Batch after batch until nothing is due, nor on its way."""
        for _ in range(MOST_BATCHES):
            if not self.batch():
                if not self.arriving:
                    return
                self.ground.now = max(when for when, *_ in self.arriving)
                self.arrive()
        raise AssertionError("promise 5: it does not come to rest")

    # --- what must hold

    def promises_hold(self) -> None:
        """A newer write of the mail server stands, and no guard is newer than C − D."""
        read: dict[Slot, Micros] = {}
        for read_at, write in self.writes:
            read[write.slot] = max(read_at, read.get(write.slot, 0))
            assert write.at <= read_at - DELAY + 1, f"promise 2: too new: {write}"
        for cell, touch in self.touched.items():
            since = read.get(self.slot(cell[0]))
            if since is None or (touch.issued < since and touch.at <= since - DELAY + 1):
                continue
            found, wanted = _shown(self.table, self, cell), _shown(self.without_us, self, cell)
            assert found == wanted, f"promise 2: {cell} is {found}, its user wrote {wanted}"

    def stuck(self) -> frozenset[str]:
        """The rows are those of the newest list but for these names, which wait for a person.

        Nothing else is open, and nothing is due any more. What was reported before an event named
        it, and agrees now, ends with a later look at open findings, which is not played here.
        """
        (projection,) = self.family.projections
        still = {each.slot: each.state for each in self.ground.journal.open_findings(self.family)}
        stuck = frozenset(self.name(slot.key) for slot in still)
        truths = self.family.truth.rows_of(SHARED, self.events)
        belonging = [row for row in truths if projection.belongs(row)]
        wanted = {str(row.get("key")): _letters(row.get("rights")) for row in belonging}
        rows = ((self.name(key), row) for key, row in self.table.rows())
        found = {name: _letters(row.get("rights")) for name, row in rows}
        off = {name for name in found.keys() | wanted if found.get(name) != wanted.get(name)}
        assert off <= stuck, f"promise 5: {found}, its list has {wanted}"
        told = {self.name(slot.key) for slot, state in still.items() if state is State.REPORTED}
        assert told & off <= self.unnamed(), f"promise 5: {still}"
        assert set(still.values()) <= {State.STUCK, State.REPORTED}, f"promise 5: {still}"
        return stuck - (told - off)

    def unnamed(self) -> frozenset[str]:
        """The names with a row that no event has ever named: the event store lost some."""
        truths = self.family.truth.rows_of(SHARED, self.events)
        rows = {self.name(key) for key, _ in self.table.rows()}
        return frozenset(rows - {str(row.get("key")) for row in truths})

    def slot(self, name: KeyValue) -> Slot:
        """Where a name's rights in the mailbox stand."""
        source = self.family.projections[0].identity
        return Slot(
            *(SHARED if each == source else name for each in self.family.projections[0].key)
        )

    def name(self, key: Sequence[KeyValue]) -> str:
        """The name in a key."""
        return next(str(part) for part in key if not isinstance(part, UUID))


def _shown(table: Table, world: World, cell: Cell) -> object:
    name, letter = cell
    row = table.read(world.slot(name).key)
    letters = None if row is None else row.get("rights")
    return letters if letter is None else letter in (letters or ())  # type: ignore[operator]


def _letters(rights: object) -> frozenset[str]:
    return frozenset(rights or ())  # type: ignore[call-overload, no-any-return]


@dataclass
class Stopped(MemoryTables):
    """The tables of a world, with a stop before and after each read and write of steps 5 and 6."""

    world: World = field(kw_only=True)
    _read_at: Micros = NOW

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        found = self._truths(messageids)
        return {each: tuple(Row(row.cells) for row in rows) for each, rows in found.items()}

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        found = self._truths(messageids)
        self.world.stop(Point.CONFIRMED)
        return found

    def _truths(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        stored = {each: self.world.events for each in messageids if each == SHARED}
        return self.truth.rows_of_each(stored)

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        return {slot: Row(row.cells) for slot, row in self._rows(slots).items()}

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self.world.stop(Point.LOOKED)
        self._read_at = self.world.now
        found = self._rows(slots)
        self.world.stop(Point.PROJECTION_READ)
        return found

    def _rows(self, slots: Iterable[Slot]) -> dict[Slot, Row]:
        read = {slot: self.world.table.read(slot.key) for slot in slots}
        return {slot: row for slot, row in read.items() if row is not None}

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        for key, row in list(self.world.table.rows(group)):
            yield Slot(*key), projection.source_of(row)

    def apply(self, writes: Sequence[Write]) -> None:
        world = self.world
        world.stop(Point.JOURNALLED)
        world.writes += ((self._read_at, each) for each in writes)
        if world.ours is not Sent.LOST:
            when = world.now + (DELAY if world.ours is Sent.LATE else 0)
            world.arriving += ((when, statement_of(each), None) for each in writes)
        world.ours = Sent.APPLIED
        world.arrive()
        world.stop(Point.REPAIRED)


# --- what James's subscribers write --------------------------------------------------------------


def of_users(before: List, new: List, at: Micros) -> Iterator[tuple[Statement, Sequence[Cell]]]:
    """Rows of users (`CassandraUserMailboxRightsDAO`): an INSERT, or a DELETE."""
    for name in before.keys() - new.keys():
        yield Delete((name, SHARED), at), [(name, None)]
    for name, rights in new.items():
        if before.get(name) != rights:
            yield Insert((name, SHARED), at, {"rights": "".join(sorted(rights))}), [(name, None)]


def of_lists(before: List, new: List, at: Micros) -> Iterator[tuple[Statement, Sequence[Cell]]]:
    """Rows of the list (`CassandraACLDAOV2`): letters are added or removed, or all replaced."""
    for name in before.keys() - new.keys():
        gone = frozenset(before[name])
        yield Update((SHARED, name), at, {}, removed={"rights": gone}), _each(name, gone)
    for name, rights in new.items():
        letters = frozenset(rights)
        if name not in before:
            yield Update((SHARED, name), at, {}, added={"rights": letters}), _each(name, letters)
        elif before[name] != rights:
            yield Update((SHARED, name), at, {"rights": letters}), [(name, None)]


def _each(name: str, letters: Iterable[str]) -> list[Cell]:
    return [(name, letter) for letter in sorted(letters)]
