"""Counters in dictionaries, and the parts of the tally thread over them, on a clock set by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from reconcilers.capture.frontier import Marks, Proven
from reconcilers.counters.drift import Evidence
from reconcilers.counters.open_message import OpenMessage
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.family import Family
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Listed, QuotaRoot, Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.limits.breakers import BreakerLimits
from reconcilers.limits.write_target import WriteTarget
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Value
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.both_sides import BothSides
from streaming.counters.correct import Corrector
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRow, CounterRows, Owners
from streaming.counters.look_rules import LookRules
from streaming.counters.observe import CounterObserver
from streaming.counters.open_messages import OpenMessages
from streaming.counters.recent_changes import RecentChanges
from streaming.counters.recount import Recount
from streaming.counters.schedule import CounterScheduler
from streaming.counters.screening import Screening
from streaming.counters.undo import CounterUndo
from streaming.steps.parking import Parking
from tests.builders.counter_breakers import NOTHING_OPENS, correction_breaker
from tests.builders.rows import DELAY, FAMILY, LONG_AGO, MAILBOX, NOW, SECOND, truth
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryRounds, MemoryTallies
from tests.fakes.many_reads import ManyReads

L: Micros = 10 * SECOND
GATHER: Micros = 60 * SECOND
AGAIN: Micros = 600 * SECOND
K = 3
WIDTH = 10
FAMILIES: tuple[Family, ...] = (MAILBOX_TALLY, replace(USER_TALLY, tallies=(CURRENT_QUOTA,)))
"""As `bind` leaves them where the keyspace has the older shape of quotas."""
OTHER = UUID("11111111-0000-1000-8000-00000000000f")
BOB, EVE = QuotaRoot("#private", "bob"), QuotaRoot("#private", "eve")
OF_MAILBOX = CounterRow(MAILBOX_TALLY.name, MAILBOX_COUNTERS, MAILBOX)
OF_BOB = CounterRow(USER_TALLY.name, CURRENT_QUOTA, str(BOB), BOB)
NODE = "node"
NO_CHANGES: Mapping[UUID, int] = {}
NONE_OPEN: Mapping[UUID, Sequence[OpenMessage]] = {}


def message(uid: int, *, seen: bool = False, size: int = 100) -> Listed:
    return Listed(uid, UUID(int=uid, version=1), seen, size)


A_NODE_IS_DOWN = Waiting(Wait.NODE_AWAY, "node 10.0.0.2 is down")


@dataclass
class CanariesByHand:
    """One node, whose canaries are numbered from 1; none before the first ``sing``, if ``mute``."""

    number: int = 1
    mute: bool = False
    nodes: str = "one node"

    def marks(self) -> Marks | None:
        return None if self.mute else Marks({NODE: self.number}, self.nodes)

    def watched(self) -> str | None:
        return self.nodes

    def sing(self) -> Proven:
        """Two more: the second tells that the first was acknowledged. Both come out."""
        self.number += 2
        return {NODE: self.number - 1}


@dataclass
class CounterTables(ManyReads):
    """The mail server's tables. ``fails`` raises at the next call of that name, once."""

    rows: dict[tuple[str, UUID | str], Sums | None] = field(default_factory=dict)
    listing: dict[UUID, list[Listed]] = field(default_factory=dict)
    truths: dict[UUID, list[Row]] = field(default_factory=dict)
    owners: dict[UUID, QuotaRoot] = field(default_factory=dict)
    paths: dict[QuotaRoot, set[UUID]] = field(default_factory=dict)
    fails: dict[str, Exception] = field(default_factory=dict)
    added: list[AddToCounter] = field(default_factory=list)
    read: list[tuple[UUID, int, int]] = field(default_factory=list)
    """Which UIDs of which mailbox were listed."""

    def _may_fail(self, call: str) -> None:
        failure = self.fails.pop(call, None)
        if failure is not None:
            raise failure

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        self._may_fail("stored")
        return self.rows.get((tally.name, key))

    def add(self, write: AddToCounter) -> None:
        self._may_fail("add")
        self.added.append(write)
        had = self.rows.get((write.tally.name, write.key)) or dict.fromkeys(write.tally.cells, 0)
        now = {each: value + write.deltas.get(each, 0) for each, value in had.items()}
        self.rows[write.tally.name, write.key] = now

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        self._may_fail("listed")
        self.read.append((mailboxid, first, last))
        yield from (each for each in self.listing.get(mailboxid, ()) if first <= each.uid <= last)

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        wanted = set(messageids)
        return {each: tuple(rows) for each, rows in self.truths.items() if each in wanted}

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        self._may_fail("owner")
        return self.owners.get(mailboxid)

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        return frozenset(self.paths.get(of, ()))

    # --- to set them up

    def give(self, mailboxid: UUID, root: QuotaRoot | None) -> None:
        """Make a mailbox, or (without a root) delete it: both tables of mailboxes agree."""
        for paths in self.paths.values():
            paths.discard(mailboxid)
        self.owners.pop(mailboxid, None)
        if root is not None:
            self.owners[mailboxid] = root
            self.paths.setdefault(root, set()).add(mailboxid)

    def hold(self, mailboxid: UUID, *messages: Listed) -> None:
        """The mailbox holds these, in the truth and in the projection."""
        self.listing[mailboxid] = sorted(messages, key=lambda each: each.uid)
        for each in messages:
            self.truths[each.messageid] = [truth_of(mailboxid, each)]

    def set_truth(self, each: Listed, **cells: Value) -> None:
        """The truth has one row of the message in `MAILBOX`, with some cells of other values."""
        self.truths[each.messageid] = [truth_of(MAILBOX, each, **cells)]


def truth_of(mailboxid: UUID, each: Listed, **cells: Value) -> Row:
    named: dict[str, Value] = {
        "messageid": each.messageid,
        "mailboxid": mailboxid,
        "uid": each.uid,
        "flagseen": each.seen,
        "fullcontentoctets": each.size,
    }
    return truth({**named, **cells})


@dataclass
class Bench:
    """The watch of one installation: mailbox `MAILBOX` of user bob, two messages, one unseen.

    Its counters are right, and its lineage is complete. ``trouble`` says why nobody may correct.
    ``steady`` is what a clock that nobody sets shows, where it is another than ``now``; ``lag`` how
    late a counter may be written (s), 0 for within the delay.
    """

    families: tuple[Family, ...] = FAMILIES
    observe: bool = False
    most: Sums = field(default_factory=lambda: {Sum.COUNT: 100, Sum.UNSEEN: 100, Sum.SIZE: 10_000})
    root_lag: Micros = 0
    breaks: BreakerLimits = NOTHING_OPENS
    back_a_minute: int = 10**9
    now: Micros = NOW
    lag: float = 0.0
    trouble: Waiting | None = None
    paused: list[Waiting | None] = field(default_factory=lambda: [None])
    steady: Micros | None = None
    tables: CounterTables = field(default_factory=CounterTables)
    tallies: MemoryTallies = field(default_factory=MemoryTallies)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    rounds: MemoryRounds = field(default_factory=MemoryRounds)
    canaries: CanariesByHand = field(default_factory=CanariesByHand)
    open_messages: OpenMessages = field(init=False)
    journal: MemoryJournal = field(init=False)
    owners: Owners = field(init=False)
    findings: CounterFindings = field(init=False)
    correcting: Corrector = field(init=False)
    watch: CounterScheduler = field(init=False)
    told: list[tuple[Finding, State | None]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.tables.give(MAILBOX, BOB)
        self.tables.hold(MAILBOX, message(1), message(2, seen=True))
        self.set_counter(count=2, unseen=1)
        self.set_quota(count=2, size=200)
        self.journal = MemoryJournal(self.clock)
        self.lineage.watch_from(LONG_AGO)
        self.lineage.mark_swept(LONG_AGO, LONG_AGO)
        self.begin()

    def begin(self) -> None:
        """A new process, over what was kept."""
        self.owners = Owners(self.tables)
        self.sides = BothSides(FAMILY, self.tables, self.tables, self.lineage, DELAY)
        self.open_messages = OpenMessages(self.sides)
        limits = CorrectionLimits(3, self.most, AGAIN, prompt=DELAY, observe=self.observe)
        self.findings = self._findings(limits)
        self.correcting = self._correcting()
        self.watch = self._watch()

    def _findings(self, limits: CorrectionLimits) -> CounterFindings:
        return CounterFindings(
            journal=self.journal,
            parking={each.name: Parking(each, self.journal, self.clock) for each in self.families},
            clock=self.clock,
            limits=limits,
            told=lambda finding, ended: self.told.append((finding, ended)),
        )

    def _correcting(self) -> Corrector:
        return Corrector(
            findings=self.findings,
            tables=self.tables,
            counting=self.counting(),
            rounds=self.rounds,
            breaker=correction_breaker(self.journal, self.clock, self.breaks, self.back_a_minute),
            trouble=lambda: self.trouble,
            pauses=self.pauses,
            steady=lambda: (self.now if self.steady is None else self.steady) / 1e6,
        )

    def _watch(self) -> CounterScheduler:
        return CounterScheduler(
            observer=CounterObserver(
                self.tables,
                self.counting(),
                self.owners,
                self.rounds,
                self.canaries,
                self.clock,
                RecentChanges(self.lag, lambda: self.now / 1e6),
                lambda proven: None,
            ),
            findings=self.findings,
            correcting=self.correcting,
            clock=self.clock,
            rules=LookRules(DELAY, GATHER, Evidence(K, 2 * K), self.root_lag),
            count=self._looked,
        )

    def _looked(self, _tally: str, outcome: str, number: int) -> None:
        self.counts[outcome] += number
        self.correcting.breaker.looked(outcome, number)

    def counting(self) -> MailboxCounter:
        return MailboxCounter(
            self.sides,
            tallies=self.tallies,
            watched=self.tallies,
            clock=self.clock,
            width=WIDTH,
            open=self.open_messages,
        )

    def screening(self) -> Screening:
        tallies = [each for family in self.families for each in family.tallies]
        return Screening(
            self.tables, self.tallies, tallies, self.clock, WIDTH, DELAY // 2, since=0, rows=50_000
        )

    def recounted(self, *mailboxids: UUID) -> Sums:
        """All of these against the truth."""
        recount = Recount(self.counting(), list(mailboxids))
        while recount.left:
            recount.step()
        return recount.sums

    @property
    def subjects(self) -> CounterRows:
        return CounterRows(self.families, self.owners)

    def clock(self) -> Micros:
        return self.now

    def pauses(self, _target: WriteTarget) -> Waiting | None:
        """Each asking takes the next answer that was planned, then the last one for ever."""
        answer = self.paused[0]
        if len(self.paused) > 1:
            self.paused.pop(0)
        return answer

    # --- what is stored

    def set_counter(self, count: int, unseen: int) -> None:
        self.tables.rows[MAILBOX_COUNTERS.name, MAILBOX] = {Sum.COUNT: count, Sum.UNSEEN: unseen}

    def set_quota(self, count: int, size: int) -> None:
        self.tables.rows[CURRENT_QUOTA.name, str(BOB)] = {Sum.COUNT: count, Sum.SIZE: size}

    def with_wrong_counter(self, count: int = 3, unseen: int = 1) -> Bench:
        """The counter of the mailbox holds these sums, and the mailbox has changed."""
        self.set_counter(count, unseen)
        self.expect(OF_MAILBOX)
        return self

    def with_wrong_quota(self, count: int = 3, size: int = 200) -> Bench:
        """The quota holds these sums, and a mailbox of its user has changed."""
        self.set_quota(count, size)
        self.expect(OF_BOB)
        return self

    def counter(self) -> tuple[int, int]:
        row = self.tables.rows[MAILBOX_COUNTERS.name, MAILBOX] or {}
        return row[Sum.COUNT], row[Sum.UNSEEN]

    def remember(self, mailboxid: UUID, *messages: Listed) -> None:
        """Lineage knows of these."""
        self.lineage.remember(
            Entry(each.messageid, Slot(mailboxid, each.uid), in_truth=True) for each in messages
        )

    # --- what happens

    def expect(self, *subjects: CounterRow) -> None:
        """A batch has told of a change there; the time of gathering passes."""
        self.watch.expect(subjects)
        self.now += GATHER

    def work(self) -> None:
        """One step of each subject that is due."""
        for watched in self.watch.ready():
            self.watch.work(watched)

    def come(
        self,
        changes: Mapping[UUID, int] = NO_CHANGES,
        refused: Waiting | None = None,
        open_messages: Mapping[UUID, Sequence[OpenMessage]] = NONE_OPEN,
    ) -> None:
        """Time passes, and all that was under way comes out of the stream."""
        self.now += DELAY + 3 * L
        proven = self.canaries.sing()
        self.watch.take(BatchSummary(changes, proven, refused, open_messages))

    def look(self, times: int = 1, **came: object) -> None:
        """Whole looks: a glance, the wait, the judgement."""
        for _ in range(times):
            self.work()
            self.come(**came)  # type: ignore[arg-type]
            self.work()
            self.now += DELAY

    def look_all_but_the_judgement(self, times: int = K) -> None:
        """Whole looks; the last one is made and complete, and not judged yet."""
        self.look(times - 1)
        self.work()
        self.come()

    def recall(self) -> None:
        """Read the open findings, as the loop does now and then."""
        self.findings.recall()

    def finding(self, subject: CounterRow = OF_MAILBOX) -> Finding | None:
        """What the journal holds of a subject."""
        family = next(each for each in self.families if each.name == subject.family)
        found = self.journal.recall(family, subject.tally.name, [subject.slot])
        return found.get(subject.slot)

    def open_finding(self, subject: CounterRow = OF_MAILBOX) -> Finding:
        """The open finding of a counter; there has to be one."""
        found = self.finding(subject)
        assert found is not None
        return found

    def states(self) -> list[State]:
        """What was told of findings, in order."""
        return [ended or finding.state for finding, ended in self.told]


def undo_of(
    bench: Bench, family: Family, stopped: Callable[[Tally], str | None] = lambda _: None
) -> CounterUndo:
    """Undoes corrections of a bench's counters."""
    return CounterUndo(
        family=family,
        tables=bench.tables,
        journal=bench.journal,
        rounds=bench.rounds,
        stopped=stopped,
        clock=bench.clock,
    )
