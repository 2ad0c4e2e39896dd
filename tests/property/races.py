"""One run: a script of steps by users, faults and the reconciler, then peace, and what must hold.

A script is a list of (choice, a, b) numbers: whatever they are, they mean something, so that
hypothesis can shrink them and a seeded loop can draw them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.compare import compare
from reconcilers.errors import Unreachable
from reconcilers.finding import Attempts, State
from reconcilers.model import Kind, LookAgain, Micros, Report, Row, Slot
from tests.builders.slots import mailbox_of, uid_of
from tests.property.mail import (
    FAMILY,
    MAILBOXES,
    MILLISECOND,
    SECOND,
    WHOLE_ROW,
    Climate,
    Fate,
    World,
)
from tests.property.reconciler import PROJECTION, Lineage, Outcome, Planned, Reconciler

CLIMATES = (
    Climate(45 * SECOND, window=6 * SECOND, skew=300 * MILLISECOND, late=31 * SECOND),
    Climate(5 * SECOND, window=2 * SECOND, skew=2400 * MILLISECOND, late=2400 * MILLISECOND),
)
"""Production, and clocks as far apart as is allowed at all (D/2)."""

FATES = (Fate.PROMPT, Fate.PROMPT, Fate.LATE, Fate.LOST, Fate.SENT_TWICE)
OUTCOMES = (Outcome.APPLIED, Outcome.APPLIED, *Outcome)
ROUNDS_TO_CONVERGE = 8

Choice = tuple[int, int, int]
Script = Sequence[Choice]


@dataclass(slots=True)
class Run:
    """A world and its reconciler, driven by a script."""

    climate: Climate
    reconciler_type: type[Reconciler] = Reconciler
    world: World = field(init=False)
    reconciler: Reconciler = field(init=False)
    looks: list[tuple[Slot, str, Iterator[str]]] = field(default_factory=list)
    to_repeat: list[tuple[Slot, str]] = field(default_factory=list)
    batches: int = 0

    def __post_init__(self) -> None:
        self.world = World(self.climate)
        lineage = Lineage(watched_since=self.world.now - 1)
        self.reconciler = self.reconciler_type(
            self.world, lineage, Attempts(apart=self.climate.delay)
        )

    # --- the script ---------------------------------------------------------------------------

    def play(self, script: Script) -> None:
        for choice, a, b in script:
            self.step(choice % 18, a, b)
            self.newer_user_writes_stand()

    def step(self, choice: int, a: int, b: int) -> None:
        match choice:
            case 0 | 1 | 2 | 3 | 4:
                self.users(choice, a, b)
            case 5:
                self.world.ballot_ahead = (b % 4) * self.climate.skew // 3
                message, clock = self.some_message(b), self.clock(b)
                self.world.append(MAILBOXES[a % 2], message, clock, FATES[a % 5])
            case 6:
                self.world.pass_time((1, 20, 400)[a % 3] * MILLISECOND)
            case 7:
                self.world.pass_time(self.climate.delay // (1 + a % 4) + a % 7)
            case 8:
                self.world.pass_time(self.climate.delay + SECOND)
            case 9:
                self.crash()
            case 10 | 11:
                self.begin_look(a, OUTCOMES[b % len(OUTCOMES)])
                for _ in range(b % 6):
                    self.go_on(-1)
            case _:
                self.go_on(a)

    def users(self, choice: int, a: int, b: int) -> None:
        slots = list(self.world.slots)
        if not slots:
            self.world.append(MAILBOXES[a % 2], None, self.clock(b), FATES[b % 5])
            return
        slot, fate = slots[a % len(slots)], FATES[b % 5]
        match choice:
            case 0 | 1:
                self.world.flag(slot, b // 5 % 16, self.clock(a), fate)
            case 2:
                truth_fate = Fate.PROMPT if b % 7 else (Fate.LATE, Fate.LOST)[a % 2]
                self.world.expunge(slot, self.clock(a + b), fate, truth_fate)
            case 3:
                self.world.re_add(slot, self.clock(b), fate)
            case _:
                self.world.plant(slot, a + b, self.clock(b))

    def clock(self, number: int) -> Micros:
        """One of three mail servers' clocks, seen from ours."""
        return (0, self.climate.skew, -self.climate.skew)[number % 3]

    def some_message(self, number: int) -> UUID | None:
        messages = self.world.messages
        return messages[number // 3 % len(messages)] if messages and number % 3 else None

    # --- the reconciler -----------------------------------------------------------------------

    def begin_look(self, number: int, outcome: Outcome) -> None:
        slots = list(self.world.slots)
        busy = {slot for slot, _, _ in self.looks}
        busy |= {slot for slot, _ in self.to_repeat}  # a failed batch comes before any later one
        if self.to_repeat and number % 2:
            slot, batch = self.to_repeat.pop()
        elif slots:
            slot, batch = slots[number // 2 % len(slots)], self.next_batch()
        else:
            return
        if slot not in busy:
            self.looks.append((slot, batch, self.reconciler.look(slot, batch, outcome)))

    def next_batch(self) -> str:
        self.batches += 1
        return str(self.batches)

    def go_on(self, number: int) -> None:
        """One step of one of the looks under way; a time-out fails its batch, which is repeated."""
        if not self.looks:
            return
        slot, batch, look = self.looks[number % len(self.looks)]
        try:
            next(look)
        except StopIteration:
            self.looks.remove((slot, batch, look))
        except Unreachable:
            self.looks.remove((slot, batch, look))
            self.to_repeat.append((slot, batch))

    def crash(self) -> None:
        """The process dies; what was under way is executed again under the same batch id."""
        self.to_repeat += [(slot, batch) for slot, batch, _ in self.looks]
        self.looks.clear()

    def peace(self) -> None:
        """Users rest, everything arrives, nothing fails; looks come a delay apart."""
        while self.looks:
            self.go_on(0)
        self.world.pass_time(3 * self.climate.delay)
        for slot, batch in self.to_repeat:
            self.look_through(slot, batch)
        self.round()
        for _ in range(ROUNDS_TO_CONVERGE):
            if self.round() == 0 and not self.looks_are_due():
                break

    def looks_are_due(self) -> bool:
        """Whether something was not judged yet: its key comes back a delay later."""
        verdicts = self.reconciler.verdicts.values()
        return any(isinstance(verdict, LookAgain) for verdict in verdicts)

    def round(self) -> int:
        """One look at everything; the number of repairs it sent."""
        self.world.pass_time(self.climate.delay + self.climate.window + SECOND)
        sent = len(self.reconciler.planned)
        for slot in self.slots():
            self.look_through(slot, self.next_batch())
        self.newer_user_writes_stand()
        return len(self.reconciler.planned) - sent

    def look_through(self, slot: Slot, batch: str) -> None:
        for _ in self.reconciler.look(slot, batch, Outcome.APPLIED):
            pass

    def slots(self) -> list[Slot]:
        return list(self.world.slots)

    # --- what must hold -----------------------------------------------------------------------

    def newer_user_writes_stand(self) -> None:
        """Promise 2: what users wrote after a confirmation read, or within D of it, stands."""
        newest: dict[Slot, list[Planned]] = {}
        for planned in self.reconciler.planned:
            newest.setdefault(planned.slot, []).append(planned)
        for slot, plans in newest.items():
            self._newer_user_writes_stand(slot, plans)

    def _newer_user_writes_stand(self, slot: Slot, plans: list[Planned]) -> None:
        read_at = max(planned.read_at for planned in plans)
        settled = max(planned.began for planned in plans) - self.climate.delay
        touches = self.world.touched.get(slot, {})
        deleted = touches.get(WHOLE_ROW)
        key = (mailbox_of(slot), uid_of(slot))
        ours, theirs = self.world.projection.read(key), self.world.without_us.read(key)
        for name, touch in touches.items():
            newest = max((touch, deleted or touch), key=lambda each: each.at)
            if newest.issued < read_at and newest.at <= settled + 1:
                continue
            if name == WHOLE_ROW:
                assert theirs is not None or ours is None, (
                    f"promise 2: {slot} was deleted by its user and is back"
                )
            else:
                assert _cell(ours, name) == _cell(theirs, name), (
                    f"promise 2: {name} at {slot} is {_cell(ours, name)},"
                    f" its user wrote {_cell(theirs, name)}"
                )

    def projection_is_the_truth(self) -> dict[Slot, Kind]:
        """Promise 5: equal everywhere but where something was reported; returns the reports."""
        reported: dict[Slot, Kind] = {}
        for slot in self.slots():
            seen = self.reconciler.read_truth(slot, self.reconciler.read_projection(slot))
            difference = compare(FAMILY, PROJECTION, seen)
            if difference is None:
                continue
            finding = self.reconciler.findings.get(slot)
            verdict = self.reconciler.verdicts.get(slot)
            assert finding is not None, f"promise 5: {slot} has {difference}, and no finding"
            assert finding.state is State.REPORTED, f"promise 5: {slot} has {difference}: {finding}"
            assert isinstance(verdict, Report)
            reported[slot] = finding.kind
        return reported

    def only_expunged_rows_were_removed(self) -> None:
        """No row was removed that its user never expunged (a range delete took its truth)."""
        for planned in self.reconciler.planned:
            message = self.world.slots[planned.slot]
            decidable = message not in self.world.odd
            if planned.kind is Kind.EXTRA_ROW and decidable:
                assert planned.slot in self.world.expunged, (
                    f"{planned.slot} was removed, and never expunged"
                )

    def guards_are_old(self) -> None:
        """Nothing newer than C − D was written, but for "seen + 1"."""
        for planned in self.reconciler.planned:
            for write in planned.writes:
                assert write.at <= planned.began - self.climate.delay + 1, f"too new: {planned}"


def _cell(row: Row | None, name: str) -> object:
    column, _, element = name.partition(".")
    value = row.get(column) if row is not None else None
    if not element:
        return value
    return isinstance(value, frozenset) and element in value


def holds(script: Script, climate: Climate, reconciler: type[Reconciler] = Reconciler) -> Run:
    """Play a script to its end and assert what must hold; returns the run for more questions."""
    run = Run(climate, reconciler)
    run.play(script)
    run.peace()
    run.projection_is_the_truth()
    run.guards_are_old()
    run.only_expunged_rows_were_removed()
    sent = run.round()
    assert sent == 0, "promise 5: a further round wrote again"
    return run
