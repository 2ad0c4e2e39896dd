"""The mail server of `past` with an index beside: the unseen UIDs of each mailbox.

James writes it by statements of their own, each of which may be lost, late or sent twice, whatever
becomes of that to the listing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from uuid import UUID

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.declared.projections.unseen_uids import UNSEEN_UIDS
from reconcilers.rows.seen import is_incomplete
from reconcilers.words.model import Kind, Micros, Row, Slot, Value, look_again
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Delete, Elements, Insert, Key, Statement, Table
from tests.property.mail import SCHEMA, Climate, Event, Fate, Touch, World
from tests.property.message_ports import PROJECTION, Planned, Ports
from tests.property.past import Past
from tests.property.races import FATES, Run

KEYS = {"firstunseen": {"mailboxid": "timeuuid", "uid": "bigint"}}
INDEXED: Family = bind(keeping(MESSAGE, (UNSEEN_UIDS.name,)), SCHEMA | KEYS)
INDEX: Projection = INDEXED.projections[1]


class IndexedWorld(World):
    """``index`` is as it stands, ``index_without_us`` as users alone have written it.

    ``index_touched`` is the newest statement of a user at each slot.
    """

    def __init__(self, climate: Climate) -> None:
        super().__init__(climate)
        self.index, self.index_without_us = (Table(("mailboxid", "uid"), (), ()) for _ in range(2))
        self.index_touched: dict[Slot, Touch] = {}
        self.fates = random.Random(0)

    def table_of(self, projection: Projection) -> Table:
        """Of the index, too."""
        return self.index if projection.is_index else super().table_of(projection)

    def repair(self, projection: Projection, slot: Slot, statement: Statement) -> None:
        """A statement of ours arrives."""
        if not projection.is_index:
            return super().repair(projection, slot, statement)
        self.index.apply(statement)
        self._index_event(slot, statement)
        return None

    def expunge(self, slot: Slot, clock: Micros, fate: Fate, truth_fate: Fate) -> None:
        """The index forgets it, too."""
        super().expunge(slot, clock, fate, truth_fate)
        self._index(slot, clock, unseen=False)

    def _project(
        self,
        slot: Slot,
        clock: Micros,
        fate: Fate,
        cells: Mapping[str, Value],
        deltas: tuple[Elements, Elements],
    ) -> None:
        super()._project(slot, clock, fate, cells, deltas)
        if "flagseen" in cells:
            self._index(slot, clock, unseen=cells["flagseen"] is False)

    def _index(self, slot: Slot, clock: Micros, *, unseen: bool) -> None:
        """By a fate of its own."""
        issued, fate = self.now, self.fates.choice(FATES)
        if fate is Fate.LOST:
            return
        first = self._statement(slot, issued + clock, unseen=unseen)
        late = self.climate.late if fate is Fate.LATE else 0
        self.later(late, lambda: self._index_arrives(slot, first, issued))
        if fate is Fate.SENT_TWICE:
            pause = self.climate.late // 2
            again = self._statement(slot, issued + pause + clock, unseen=unseen)
            self.later(pause, lambda: self._index_arrives(slot, again, issued + pause))

    def _statement(self, slot: Slot, at: Micros, *, unseen: bool) -> Statement:
        key: Key = (mailbox_of(slot), uid_of(slot))
        return Insert(key, at, {}) if unseen else Delete(key, at)

    def _index_arrives(self, slot: Slot, statement: Statement, issued: Micros) -> None:
        self.index.apply(statement)
        self.index_without_us.apply(statement)
        touch, before = Touch(statement.at, issued), self.index_touched.get(slot)
        if before is None or before.at <= touch.at:
            self.index_touched[slot] = touch
        self._index_event(slot, statement)

    def _index_event(self, slot: Slot, statement: Statement) -> None:
        deleted_at = statement.at if isinstance(statement, Delete) else None
        place = (mailbox_of(slot), uid_of(slot))
        self.events.append(Event(self.now, INDEX.table, None, *place, deleted_at))


class IndexedRun(Run):
    """The same steps with the index among what is kept right."""

    world: IndexedWorld

    @property
    def family(self) -> Family:
        """The listing and the index."""
        return INDEXED

    def new_world(self) -> IndexedWorld:
        """Where nothing has happened yet."""
        return IndexedWorld(self.climate)

    def marks(self, slot: Slot) -> Row | None:
        """The row of the index."""
        return self.world.index.read((mailbox_of(slot), uid_of(slot)))

    def newer_user_writes_stand(self) -> None:
        """Promise 2, of the index too: newer than the reads, or within D of them."""
        super().newer_user_writes_stand()
        newest: dict[Slot, Planned] = {each.slot: each for each in self.kept.planned_of_indexes}
        for slot, planned in newest.items():
            touch = self.world.index_touched.get(slot)
            if touch is None or (
                touch.issued < planned.read_at and touch.at <= planned.began - self.climate.delay
            ):
                continue
            key = (mailbox_of(slot), uid_of(slot))
            wanted = self.world.index_without_us.read(key) is not None
            there = self.marks(slot) is not None
            assert there is wanted, f"promise 2: the index at {slot}: {there}, its user: {wanted}"


class IndexedPast(Past):
    """A past in which the index has lost rows, and kept others, as well."""

    run: IndexedRun

    def new_run(self, climate: Climate) -> IndexedRun:
        """Over a world with the index."""
        made = IndexedRun(climate)
        made.world.fates = random.Random(self.seed)
        return made

    def _live_before(self) -> None:
        super()._live_before()
        for slot in list(self.world.slots):
            key, at = (mailbox_of(slot), uid_of(slot)), self.world.now
            match self.rng.randrange(6):
                case 0:
                    damage: Statement = Delete(key, at)
                case 1:
                    damage = Insert(key, at, {})
                case _:
                    continue
            for table in (self.run.world.index, self.run.world.index_without_us):
                table.apply(damage)

    def _touch(self) -> None:
        """The rows of the index are read again, too, as by a sweep."""
        super()._touch()
        for (mailbox, uid), _row in self.run.world.index.rows():
            assert isinstance(mailbox, UUID)
            assert isinstance(uid, int)
            event = Event(self.world.now, INDEX.table, None, mailbox, uid)
            self.world.events.append(event)

    def sweep(self) -> IndexedPast:
        """The truth was read when the play ended; that is marked, then all else is read."""
        kept = self.run.kept
        watching = kept.lineage.watching()
        assert watching is not None
        kept.lineage.mark_swept(self.world.now, watching.since)
        Ports(kept).publish(
            look_again(each.slot, each.projection, None, None, each.kind)
            for each in kept.journal.open_findings(INDEXED)
            if each.kind is Kind.UNRESOLVED
        )
        for (mailbox, uid), _row in self.run.world.projection.rows():
            assert isinstance(mailbox, UUID)
            assert isinstance(uid, int)
            event = Event(self.world.now, PROJECTION.table, None, mailbox, uid)
            self.world.events.append(event)
        kept.lineage.mark_listed(self.world.now, watching.since)
        self._touch()
        self.run.peace()
        self._judge()
        return self

    def nothing_is_unresolved(self) -> IndexedPast:
        """No finding says that nobody knows the message."""
        found = self.run.kept.journal.open_findings(INDEXED)
        left = [each for each in found if each.kind is Kind.UNRESOLVED]
        assert not left, f"unresolved after a sweep: {left}"
        return self

    def index_is_right(self) -> IndexedPast:
        """Wherever listing and truth agree that there is a message, or that there is none.

        Where a row is left of a message that nobody remembers, a finding says so; where the truth's
        row lacks cells, that of the listing does.
        """
        truths: dict[Key, list[Row]] = {}
        for key, row in self.world.truth.rows():
            truths.setdefault(key[1:], []).append(row)
        for slot in self.world.slots:
            found = tuple(truths.get((mailbox_of(slot), uid_of(slot)), ()))
            if bool(found) is not (self.run.row(slot) is not None):
                continue
            unseen = any(each.get("flagseen") is False for each in found)
            if unseen is (self.run.marks(slot) is not None):
                continue
            incomplete = any(is_incomplete(INDEXED, each) for each in found)
            told = Kind.INCOMPLETE_TRUTH_ROW if incomplete else Kind.UNRESOLVED
            projection = PROJECTION if incomplete else INDEX
            finding = self.run.kept.journal.recall(INDEXED, projection.name, [slot]).get(slot)
            says = finding is not None and finding.kind is told
            assert says, f"the index at {slot}, unseen: {unseen}, and {finding}"
        return self
