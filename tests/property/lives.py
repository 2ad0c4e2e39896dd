"""Lives of a mailbox: what James, capture, clocks and operators may do to it.

A life is a `Past` of which users also add again what they had, statements of both sides fail or are
sent twice, rows are written that James never writes, clocks differ up to the limit, and a person
accepts, undoes and releases at random. Content is asked for, as in production. Crashes and failed
writes of ours are in `races`, late events in `test_behind`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from checkpoints.pauses import Resumed
from reconcilers.rows.finding import State
from reconcilers.words.model import KeyValue, Kind, Micros, Slot
from streaming.steps.undo import Undoing
from tests.property import races
from tests.property.mail import FAMILY, MAILBOXES, MILLISECOND, SECOND, Climate, Fate
from tests.property.message_ports import PROJECTION, Planned
from tests.property.past import Past
from tests.property.races import Run
from tests.property.stories import asking

CLIMATES = (
    *races.CLIMATES,
    Climate(45 * SECOND, window=6 * SECOND, skew=13_900 * MILLISECOND, late=31 * SECOND),
    Climate(45 * SECOND, window=6 * SECOND, skew=22_400 * MILLISECOND, late=22 * SECOND),
)
"""Production; then lateness and difference of clocks that together just stay below D."""
FAILING = (Fate.LATE, Fate.LOST, Fate.SENT_TWICE)
LISTING_FATES = (*(Fate.PROMPT,) * 9, *FAILING)
TRUTH_FATES = (*(Fate.PROMPT,) * 17, *FAILING)
"""Of twelve statements to the listing one is lost, of twenty deletes of the truth one fails."""


@dataclass
class Life(Past):
    """One life. ``persons`` is how many kinds of what a person does there are; 0: nobody acts."""

    persons: int = 4
    undone: int = 0
    given_up: dict[Slot, Micros] = field(default_factory=dict)

    def new_run(self, climate: Climate) -> Run:
        """With clocks of its own, and content."""
        run = Run(CLIMATES[self.seed % len(CLIMATES)])
        run.confirmer = asking(self)
        return run

    def having_owner(self, _sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        return ()

    having_user = having_owner

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        """Messages whose content James has not deleted."""
        return {each for each in sources if each not in self.without_content}

    def _step(self) -> None:
        world, slot = self.world, self._some_slot()
        match self.rng.randrange(40):
            case 0:
                self.without_content.discard(world.slots[slot])  # a restore brings it back
                world.re_add(slot, self._clock(), self._fate())
            case 1:
                world.plant(slot, self.rng.randrange(64), self._clock())
            case 2 if self.rng.randrange(8) == 0:  # by hand: James never does
                world.purge(world.slots[slot], self._clock())
                world.later(SECOND, partial(self._delete_content, slot))
            case 3:
                world.ballot_ahead = self.rng.randrange(4) * self.run.climate.skew // 3
            case 4 | 5:
                self._expunge(self._some_slot(), self._fate())
                self._expunge(self._some_slot(), self._fate())
            case 6 | 7:
                self._copy()
            case 8 | 9:
                self._person()
            case _:
                super()._step()

    def _fate(self) -> Fate:
        return self.rng.choice(LISTING_FATES)

    def _clock(self) -> Micros:
        return self.run.clock(self.rng.randrange(3))

    def _add(self, message: object, fate: Fate = Fate.PROMPT) -> None:
        """A copy is made within its mailbox by one user in five."""
        there = {slot.group for slot, each in self.world.slots.items() if each == message}
        others = [each for each in MAILBOXES if each not in there] or list(MAILBOXES)
        chosen = others if self.rng.random() < 0.8 else MAILBOXES
        self.world.append(self.rng.choice(chosen), message, self._clock(), fate)  # type: ignore[arg-type]

    def _expunge(self, slot: Slot, fate: Fate) -> None:
        """Of a row that its user sees, by either table."""
        world = self.world
        if not world.sees(slot):
            return
        world.expunge(slot, self._clock(), fate, self.rng.choice(TRUTH_FATES))
        world.later(world.climate.late + SECOND, partial(self._delete_content, slot))

    def _delete_content(self, slot: Slot) -> None:
        message = self.world.slots[slot]
        if not self.world.truth_rows(message):
            self.without_content.add(message)

    # --- a person

    def _person(self) -> None:
        kind = self.rng.randrange(4)
        if kind >= self.persons:
            return
        journal, slot, now = self.run.kept.journal, self._some_slot(), self.world.now
        standing = journal.holds.standing(FAMILY, PROJECTION.name, [slot]).get(slot)
        if standing is not None:
            journal.holds.withdraw(standing, Resumed(now, "ana", "enough"))
        elif kind < 2:
            self._accept()
        else:
            self._undo(slot)

    def _accept(self) -> None:
        waiting = [
            each
            for each in self.run.kept.journal.open_findings(FAMILY)
            if each.state in (State.REPORTED, State.HELD)
        ]
        if waiting:
            self.run.accept(self.rng.choice(waiting))

    def _undo(self, slot: Slot) -> None:
        if slot in self.run.kept.repairs and self.run.undo(slot)[1] is Undoing.DONE:
            self.undone += 1
            self.given_up.pop(slot, None)

    # --- what must hold

    def _judge(self) -> None:
        self.run.newer_user_writes_stand()
        new, self.judged = self.run.kept.planned[self.judged :], len(self.run.kept.planned)
        for planned in new:
            if planned.kind is not Kind.EXTRA_ROW:
                continue
            if planned.accepted:
                self.given_up[planned.slot] = planned.began
            if not planned.kept or self._is_given_up(planned.slot):
                continue
            if planned.source is None or self._names_another(planned):
                continue  # nobody can read it
            readable = self.world.slots[planned.slot] not in self.without_content
            assert not readable, f"evidence: {planned.slot} was removed, and its user kept it"
            assert not self._went_with(planned.slot), (
                f"content: one delete took {planned.slot} with another, and it was removed"
            )

    def _is_given_up(self, slot: Slot) -> bool:
        """Whether a person has let the row go, and nobody has added it again, or undone that."""
        return self.given_up.get(slot, 0) > self.world.added[slot]

    def _names_another(self, planned: Planned) -> bool:
        """Whether the row named a message that is not its own, and lineage knew no other."""
        message = self.world.slots[planned.slot]
        known = self.run.kept.lineage.of_slots([planned.slot]).get(planned.slot, ())
        return planned.source != message and all(each.source != message for each in known)

    def _went_with(self, slot: Slot) -> set[Slot]:
        """Rows of its message that lineage knows, and that the truth lost by the same delete."""
        lineage, lost = self.run.kept.lineage, self.world.lost
        known = lineage.of_sources([self.world.slots[slot]]).values()
        others = {each.slot for some in known for each in some} - {slot}
        return {
            each
            for each in others & lost.keys()
            if each.group == slot.group and lost[each] == lost.get(slot)
        }
