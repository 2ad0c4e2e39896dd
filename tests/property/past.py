"""A mail server with a past: most of its mail, and some of its damage, is older than the stream.

Of that past nothing is remembered. Later capture stops and comes back, and the truth may be
restored from a snapshot. `Past` plays that beside the users of `mail` and the product of `races`.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.limits.behind import longest_age
from reconcilers.rows.compare import compare
from reconcilers.rows.finding import State
from reconcilers.rows.memory import Entry
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, Micros, Row, Slot
from reconcilers.words.waiting import Wait, Waiting
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Delete, Key, Table, Update
from tests.property.mail import FAMILY, MAILBOXES, SECOND, Climate, Event, Fate, World
from tests.property.message_ports import PROJECTION
from tests.property.races import CLIMATES, FATES, Run

WAITING = (State.REPORTED, State.HELD)
"""For a person, or for a condition that its sentence names."""


@dataclass(slots=True)
class Past:
    """One run. ``gap`` is how many events had come when capture stopped, None while it works.

    Nobody need have noticed that; but no canary comes out since ``silent_since``, so soon the
    stream is behind.

    ``without_content`` are messages that nobody can read any more: their mail server deletes the
    content after an expunge when no truth row is left.
    """

    seed: int
    restores: bool = False
    ends_memory: bool = True
    canaries: bool = True
    rng: random.Random = field(init=False)
    run: Run = field(init=False)
    gap: int | None = None
    silent_since: Micros | None = None
    snapshot: Table | None = None
    without_content: set[UUID] = field(default_factory=set)
    judged: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.run = self.new_run(CLIMATES[self.seed % len(CLIMATES)])
        self._live_before()
        self.run.world.pass_time(10 * self.run.climate.delay)
        self.run.world.events.clear()
        self.run.kept.lineage.stop_watching()
        self._watch()

    def new_run(self, climate: Climate) -> Run:
        """Over a world in which nothing has happened yet."""
        return Run(climate)

    @property
    def world(self) -> World:
        return self.run.world

    # --- before the stream ------------------------------------------------------------------------

    def _live_before(self) -> None:
        """Mail, copies, expunges; then rows are lost on either side, and cells differ."""
        for _ in range(self.rng.randrange(2, 7)):
            self._add(self.world.old_message())
        for _ in range(self.rng.randrange(4)):
            self._add(self.world.slots[self._some_slot()])
        for slot in list(self.world.slots):
            self.world.pass_time(SECOND)
            match self.rng.randrange(8):
                case 0:
                    fate = self.rng.choice((Fate.PROMPT, Fate.LOST))
                    self._expunge(slot, fate)
                case 1:
                    self._lose_listed(slot)
                case 2:
                    self._lose_true(slot)
                case 3:
                    self._alter(slot)

    def _add(self, message: UUID | None, fate: Fate = Fate.PROMPT) -> None:
        self.world.append(self.rng.choice(MAILBOXES), message, 0, fate)

    def _fate(self) -> Fate:
        return self.rng.choice(FATES)

    def _some_slot(self) -> Slot:
        return self.rng.choice(list(self.world.slots))

    def _lose_listed(self, slot: Slot) -> None:
        gone = Delete((mailbox_of(slot), uid_of(slot)), self.world.now)
        self.world.projection.apply(gone)
        self.world.without_us.apply(gone)

    def _lose_true(self, slot: Slot) -> None:
        """Nobody has deleted it: the listing still has it, and its user reads it."""
        key = (self.world.slots[slot], mailbox_of(slot), uid_of(slot))
        self.world.truth.apply(Delete(key, self.world.now))

    def _alter(self, slot: Slot) -> None:
        """Only where the row is there: else it would be a part of one."""
        if self.run.row(slot) is None:
            return
        stale = Update((mailbox_of(slot), uid_of(slot)), self.world.now, {"flagseen": True})
        self.world.projection.apply(stale)
        self.world.without_us.apply(stale)

    # --- beside the stream ------------------------------------------------------------------------

    def play(self, steps: int = 30) -> Past:
        """Steps of users, of capture and of the product; then peace. Asserts all along."""
        for _ in range(steps):
            self._step()
            self._hear()
            self._judge()
        if self.gap is not None:
            self._capture_comes_back()
        self.world.pass_time(3 * self.run.climate.delay)
        self._touch()
        self.run.peace()
        self._judge()
        return self

    def _touch(self) -> None:
        """A change of each row of the truth: what is never touched again nobody finds."""
        for (message, mailbox, uid), _row in self.world.truth.rows():
            assert isinstance(message, UUID)
            assert isinstance(mailbox, UUID)
            assert isinstance(uid, int)
            now = self.world.now
            self.world.events.append(Event(now, FAMILY.truth.table, message, mailbox, uid))

    def _step(self) -> None:
        draw, delay = self.rng.randrange(24), self.run.climate.delay
        match draw:
            case 0 | 1:
                self._add(None, self._fate())
            case 2 | 3:
                self._copy()
            case 4 | 5:
                wanted = self.rng.randrange(16)
                self.world.flag(self._some_slot(), wanted, 0, self._fate())
            case 6 | 7 | 8:
                self._expunge(self._some_slot(), self._fate())
            case 9 | 10:
                self._switch(draw)
            case 11 if self.restores:
                self._restore()
            case 12:
                self._forget()
            case 13 | 14 | 15:
                self.world.pass_time(self.rng.randrange(2 * delay))
            case _:
                self.world.pass_time(self.rng.choice((SECOND, delay, 3 * delay)))
                self._hear()
                self.run.behind = self._behind()
                self.run.execute(self.run.batch_of(self._some()))

    def _forget(self) -> None:
        """Weeks later: what was written by then was received, or is lost, and was looked at."""
        self.world.pass_time(3 * self.run.climate.delay)
        self._hear()
        self.run.behind = self._behind()
        self.run.execute(self.run.batch_of(list(self.world.slots)))
        self.run.kept.lineage.forget()

    def _switch(self, draw: int) -> None:
        """Capture, off or on; in half of the runs a sweep while it is on."""
        if self.gap is not None:
            self._capture_comes_back()
        elif draw == 9:
            self._capture_stops()
        elif self.seed % 2:
            self._sweep()

    def _behind(self) -> Waiting | None:
        climate, since = self.run.climate, self.silent_since
        longest = longest_age(climate.delay, climate.window, 0)
        if not self.canaries or since is None or self.world.now <= since + longest:
            return None
        return Waiting(Wait.BEHIND, "capture is silent")

    def _some(self) -> list[Slot]:
        slots = list(self.world.slots)
        return slots if self.rng.random() < 0.5 else self.rng.sample(slots, 1 + len(slots) // 3)

    def _copy(self) -> None:
        """Of a message that is still there; what has no content cannot be copied."""
        slot = self._some_slot()
        if self.world.truth_rows(message := self.world.slots[slot]):
            self._add(message, self._fate())

    def _expunge(self, slot: Slot, fate: Fate) -> None:
        """Of a row that its user sees."""
        if self.run.row(slot) is None:
            return
        message, world = self.world.slots[slot], self.world
        world.expunge(slot, 0, fate, Fate.PROMPT)

        def delete_content() -> None:
            if not world.truth_rows(message):
                self.without_content.add(message)

        world.later(SECOND, delete_content)

    # --- capture, and the truth restored ----------------------------------------------------------

    def _capture_stops(self) -> None:
        self.gap, self.silent_since = len(self.world.events), self.world.now
        if self.ends_memory and self.rng.random() < 0.5:
            self.run.kept.lineage.stop_watching()  # else it is noticed when capture is back

    def _capture_comes_back(self) -> None:
        self._hear()
        self.gap = self.silent_since = self.run.behind = None
        if self.ends_memory:
            self._watch()

    def _watch(self) -> None:
        """The first frontier: what was written before has come out, or never comes."""
        self.run.kept.lineage.watch_from(self.world.now)

    def _sweep(self) -> None:
        """Both sides are read, and all of it is remembered; what differs is found elsewhere."""
        lineage, now = self.run.kept.lineage, self.world.now
        if (watching := lineage.watching()) is None:
            return
        for (source, *place), _row in self.world.truth.rows():
            entry = Entry(source, Slot(*place), in_truth=True, recorded_at=now)
            before = self._remembered(entry)
            if before is None or (before.recorded_at or 0) < watching.since:
                lineage.remember([entry])
        lineage.mark_swept(now, watching.since)
        for key, row in self.world.projection.rows():
            if isinstance(message := row.get("messageid"), UUID):
                entry = Entry(message, Slot(*key), in_truth=False)
                if self._remembered(entry) is None:
                    lineage.remember([entry])
        lineage.mark_listed(now, watching.since)

    def _remembered(self, entry: Entry) -> Entry | None:
        entries = self.run.kept.lineage.of_sources([entry.source]).get(entry.source, ())
        return next((each for each in entries if each.slot == entry.slot), None)

    def _hear(self) -> None:
        """Nothing, while nothing is captured."""
        if self.gap is not None:
            del self.world.events[self.gap :]

    def _restore(self) -> None:
        """The truth is as it was some time ago, and neither James nor capture tells of it."""
        if self.snapshot is None:
            self.snapshot = copy.deepcopy(self.world.truth)
        else:
            self.world.truth, self.snapshot = self.snapshot, None

    # --- what must hold ---------------------------------------------------------------------------

    def _judge(self) -> None:
        self.run.newer_user_writes_stand()
        new, self.judged = self.run.kept.planned[self.judged :], len(self.run.kept.planned)
        for planned in new:
            if planned.kind is not Kind.EXTRA_ROW or not planned.kept or planned.accepted:
                continue
            if planned.source is None:
                continue  # nobody can read what names no message
            readable = self.world.slots[planned.slot] not in self.without_content
            assert not readable, f"evidence: {planned.slot} was removed, and nobody deleted it"

    def converges(self) -> Past:
        """What is left differs for a reason that a finding names, and nothing more is written."""
        claiming: dict[Key, list[Row]] = {}
        for key, row in self.world.truth.rows():
            claiming.setdefault(key[1:], []).append(row)
        for slot in self.world.slots:
            truths = tuple(claiming.get((mailbox_of(slot), uid_of(slot)), ()))
            difference = compare(FAMILY, PROJECTION, Seen(slot, self.run.row(slot), truths))
            finding = self.run.finding(slot)
            if difference is None:
                continue
            assert finding is not None, f"convergence: {slot} has {difference}, and no finding"
            assert finding.state in WAITING, f"convergence: {slot}: {finding}"
        sent = self.run.round()
        assert sent == 0, "convergence: a further round wrote again"
        return self
