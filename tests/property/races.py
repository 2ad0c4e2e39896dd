"""One run: a script of steps by users, faults and the reconciler, then peace, and what must hold.

The reconciler is the product: its `Look`, `Confirmer`, `LineageRecorder`, `Examiner` and `Repairer`
run over `message_ports`. At each port the script goes on with whatever it says next, other looks
included, until it lets this one go on. A script is a list of (choice, a, b) numbers: whatever they
are, they mean something, so that hypothesis can shrink them and a seeded loop can draw them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.declared.family import Family, Projection
from reconcilers.limits.behind import longest_age
from reconcilers.limits.gate import Admission
from reconcilers.limits.hold import Hold
from reconcilers.rows.compare import compare
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Action, Attempts, Finding, State
from reconcilers.rows.memory import believed_since
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Kind, Micros, Row, Slot, Wake
from reconcilers.words.waiting import Waiting
from streaming.pipeline.open_finding import finding_wake
from streaming.pipeline.suspects import each_once
from streaming.steps.confirm import Confirmer
from streaming.steps.examine import Examiner, Rules
from streaming.steps.look import Look
from streaming.steps.undo import RowUndo, Undoing
from tests.builders.permits import permit
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Key
from tests.property.faults import CrashError, Outcome
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
from tests.property.message_ports import PROJECTION, Kept, Planned, Ports

CLIMATES = (
    Climate(45 * SECOND, window=6 * SECOND, skew=300 * MILLISECOND, late=31 * SECOND),
    Climate(5 * SECOND, window=2 * SECOND, skew=2400 * MILLISECOND, late=2400 * MILLISECOND),
)
"""Production, and clocks as far apart as is allowed at all (D/2)."""

FATES = (Fate.PROMPT, Fate.PROMPT, Fate.LATE, Fate.LOST, Fate.SENT_TWICE)
OUTCOMES = (Outcome.APPLIED, Outcome.APPLIED, *Outcome)
GOES_ON = range(12, 18)
ROUNDS_TO_CONVERGE = 8

Choice = tuple[int, int, int]
Script = Sequence[Choice]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the stream, the same when it is executed again: who is asked for in it."""

    name: str
    slots: tuple[Slot, ...]


@dataclass(slots=True)
class Run:
    """A world and its reconciler, driven by a script.

    ``looks`` are the batches under way, each begun at a port of the one before it; ``undisturbed``
    is at how many ports the newest goes on at once. ``pending`` are keys not judged yet. ``behind``
    is what the driver says while events have not come.
    """

    climate: Climate
    confirmer: type[Confirmer] = Confirmer
    world: World = field(init=False)
    kept: Kept = field(init=False)
    script: Iterator[Choice] = field(default_factory=lambda: iter(()))
    looks: list[Batch] = field(default_factory=list)
    to_repeat: list[Batch] = field(default_factory=list)
    pending: set[Slot] = field(default_factory=set)
    batches: int = 0
    undisturbed: int = 0
    behind: Waiting | None = None

    def __post_init__(self) -> None:
        self.world = self.new_world()
        self.kept = Kept(self.world, self.interrupt)

    @property
    def family(self) -> Family:
        """What is kept right."""
        return FAMILY

    def new_world(self) -> World:
        """Where nothing has happened yet."""
        return World(self.climate)

    # --- the script ---------------------------------------------------------------------------

    def play(self, script: Script) -> None:
        self.script = iter(script)
        for choice, a, b in self.script:
            with suppress(CrashError):
                self.step(choice % 18, a, b)

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
            case 9 if self.looks:
                raise CrashError("what is under way dies, and is executed again")
            case 10 | 11:
                self.begin_look(a, b, OUTCOMES[b % len(OUTCOMES)])
            case _:
                pass
        self.newer_user_writes_stand()

    def interrupt(self) -> None:
        """Called at each port of a look: the script goes on, until it says that the look does."""
        if self.undisturbed:
            self.undisturbed -= 1
            return
        for choice, a, b in self.script:
            if choice % 18 in GOES_ON:
                self.undisturbed = b % 3
                return
            self.step(choice % 18, a, b)

    def users(self, choice: int, a: int, b: int) -> None:
        slots = list(self.world.slots)
        if not slots:
            self.world.append(MAILBOXES[a % 2], None, self.clock(b), FATES[b % 5])
            return
        slot, fate = slots[a % len(slots)], FATES[b % 5]
        match choice:
            case 0 | 1:
                self.world.flag(slot, b // 5 % 16, self.clock(a), fate)
            case 2 if not self.world.sees(slot):
                pass
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
        if messages and number % 3:
            return messages[number // 3 % len(messages)]
        return None if number % 4 else self.world.old_message()

    # --- the reconciler -----------------------------------------------------------------------

    def begin_look(self, a: int, b: int, outcome: Outcome) -> None:
        """At a slot, or at all of its mailbox, of which nobody looks at any."""
        slots = list(self.world.slots)
        busy = {slot for batch in self.looks for slot in batch.slots}
        if self.to_repeat and a % 2:
            batch = self.to_repeat.pop()
        elif slots:
            # a failed batch comes before any later one
            busy |= {slot for batch in self.to_repeat for slot in batch.slots}
            one = slots[a // 2 % len(slots)]
            wanted = [one] if b // 6 % 4 else [s for s in slots if s.group == one.group]
            batch = self.batch_of([slot for slot in wanted if slot not in busy])
        else:
            return
        if batch.slots:
            self.undisturbed = b % 4
            self.look(batch, outcome)

    def look(self, batch: Batch, outcome: Outcome) -> None:
        """A batch that is not executed to its end is executed again, under the same name."""
        self.looks.append(batch)
        try:
            self.execute(batch, outcome)
        except Unreachable:
            self.to_repeat.append(batch)
        except CrashError:
            self.to_repeat.append(batch)
            raise
        finally:
            self.looks.remove(batch)
            self.undisturbed = 0

    def batch_of(self, slots: Sequence[Slot]) -> Batch:
        self.batches += 1
        return Batch(str(self.batches), tuple(slots))

    def execute(self, batch: Batch, outcome: Outcome = Outcome.APPLIED) -> None:
        """Steps 3 to 7 for a batch: what has settled, what came round, and who is asked for.

        What else has settled is only remembered: its slots are looked at when they are asked for.
        """
        kept, world = self.kept, self.world
        until = world.now - self.climate.delay - self.climate.window
        settled, first = kept.settled(until), kept.taken
        again = kept.came_round(batch.slots, world.now - self.climate.delay)
        asked = [self._key(slot) for slot in batch.slots]
        wakes = [*settled, *(wake for _, wake in again), *asked]
        ports = Ports(kept, outcome)
        since = believed_since(kept.lineage.watching(), self.climate.delay)
        look = Look(self.family, ports, kept.lineage, since)
        found = look.at(wakes, world.now)
        kept.taken = max(kept.taken, first + len(settled))
        ports.publish(found.again)
        suspects = each_once(each for each in found.suspects if each.slot in batch.slots)
        allowed = permit(Admission(memory_wait=self.behind, frontier=until))
        outcomes = []
        for projection in self.family.projections:
            concerned = [each for each in suspects if each.projection == projection.name]
            examiner = self._examiner(projection, Ports(kept, outcome))
            outcomes += examiner.examine(concerned, allowed, batch.name)
        self.pending.difference_update(batch.slots)
        self.pending |= {each.slot for each in outcomes if each.action is Action.LOOK_AGAIN}
        kept.published = [each for each in kept.published if each not in again]

    def _key(self, slot: Slot) -> Wake:
        """As by an event that tells nothing else, or by the open finding."""
        finding = self.finding(slot)
        return Wake(slot.key, None) if finding is None else finding_wake(self.family, finding)

    def _examiner(self, projection: Projection, ports: Ports) -> Examiner:
        delay, kept = self.climate.delay, self.kept
        return Examiner(
            projection=projection,
            tables=ports,
            confirmation=self.confirmer(
                *(self.family, projection, ports, kept.lineage),
                delay=self.climate.delay,
            ),
            journal=kept.journal,
            publish=ports.publish,
            clock=ports.clock,
            rules=Rules(
                delay=delay,
                heard_within=longest_age(delay, self.climate.window, 0),
                recheck_interval=100 * delay,
                attempts=Attempts(apart=delay),
                empty_truth_min_rows=10,
            ),
        )

    def peace(self) -> None:
        """Users rest, everything arrives, nothing fails; looks come a delay apart."""
        self.world.pass_time(3 * self.climate.delay)
        for batch in self.to_repeat:
            self.execute(batch)
        self.round()
        for _ in range(ROUNDS_TO_CONVERGE):
            if self.round() == 0 and not self.pending:
                break

    def round(self) -> int:
        """One look at everything; the number of repairs it sent."""
        self.world.pass_time(self.climate.delay + self.climate.window + SECOND)
        sent = len(self.kept.planned)
        self.execute(self.batch_of(list(self.world.slots)))
        self.newer_user_writes_stand()
        return len(self.kept.planned) - sent

    # --- a person

    def accept(self, finding: Finding) -> None:
        """A person lets it be carried out."""
        self.kept.journal.accept(accepted(finding, self.world.now))

    def undo(self, slot: Slot) -> tuple[Hold, Undoing]:
        """A person undoes the last repair of a row of the listing, and holds it."""
        hold = Hold(FAMILY.name, PROJECTION.name, slot, self.world.now, "ana", "it was wrong")
        ports, kept = Ports(self.kept, Outcome.APPLIED), self.kept
        undoing = RowUndo(
            *(FAMILY, ports, kept.journal, kept.lineage),
            paused=lambda *_: None,
            clock=ports.clock,
        )
        return hold, undoing.carry_out(kept.repairs[slot], hold).what

    def finding(self, slot: Slot) -> Finding | None:
        """The open one."""
        return self.kept.journal.recall(FAMILY, PROJECTION.name, [slot]).get(slot)

    def row(self, slot: Slot) -> Row | None:
        """The projection's."""
        return self.world.projection.read((mailbox_of(slot), uid_of(slot)))

    # --- what must hold -----------------------------------------------------------------------

    def newer_user_writes_stand(self) -> None:
        """Promise 2: what users wrote after a confirmation read, or within D of it, stands."""
        newest: dict[Slot, list[Planned]] = {}
        for planned in self.kept.planned:
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
        claiming: dict[Key, list[Row]] = {}
        for key, row in self.world.truth.rows():
            claiming.setdefault(key[1:], []).append(row)
        for slot in self.world.slots:
            truths = tuple(claiming.get((mailbox_of(slot), uid_of(slot)), ()))
            difference = compare(FAMILY, PROJECTION, Seen(slot, self.row(slot), truths))
            if difference is None:
                continue
            finding = self.finding(slot)
            assert finding is not None, f"promise 5: {slot} has {difference}, and no finding"
            assert finding.state is State.REPORTED, f"promise 5: {slot} has {difference}: {finding}"
            reported[slot] = finding.kind
        return reported

    def only_expunged_rows_were_removed(self) -> None:
        """Evidence: no row was removed that its user never expunged, though its truth is gone."""
        for planned in self.kept.planned:
            if planned.kind is Kind.EXTRA_ROW and not planned.accepted:
                assert not planned.kept, (
                    f"evidence: {planned.slot} was removed, and its user kept it"
                )

    def guards_are_old(self) -> None:
        """Nothing newer than C − D was written, but for "seen + 1"."""
        for planned in self.kept.planned:
            for write in planned.writes:
                assert write.at <= planned.began - self.climate.delay + 1, f"too new: {planned}"

    def reads_are_in_order(self) -> None:
        """The projection first, the truth second (promise 2), in each confirmation."""
        assert not self.kept.misread, f"order of reads: {self.kept.misread[0]}"


def _cell(row: Row | None, name: str) -> object:
    column, _, element = name.partition(".")
    value = row.get(column) if row is not None else None
    if not element:
        return value
    return isinstance(value, frozenset) and element in value


def holds(script: Script, climate: Climate, confirmer: type[Confirmer] = Confirmer) -> Run:
    """Play a script to its end and assert what must hold; returns the run for more questions."""
    run = Run(climate, confirmer)
    run.play(script)
    run.peace()
    run.projection_is_the_truth()
    run.guards_are_old()
    run.only_expunged_rows_were_removed()
    sent = run.round()
    assert sent == 0, "promise 5: a further round wrote again"
    run.reads_are_in_order()
    return run
