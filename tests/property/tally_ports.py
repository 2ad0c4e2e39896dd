"""What the product reads and writes, over a `World`: time passes in every call, and faults strike.

Each place where a process may die, or a server may not answer, has a name (`POINTS`). Every delta
that is sent is held against what the world knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty
from threading import Event
from uuid import UUID

from checkpoints.tallies import ChunkSums
from reconcilers.capture.frontier import Marks
from reconcilers.counters.drift import Interval
from reconcilers.declared.tally import Listed, QuotaRoot, Sums, Tally, UidRange
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.finding import Finding
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import KeyValue, Micros, Row
from streaming.counters.batch_summary import BatchSummary
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.tallies import MemoryRounds
from tests.fakes.many_reads import ManyReads
from tests.property.faults import Outcome
from tests.property.mail import DATE, MILLISECOND
from tests.property.tallies import NODE, ROOT, RowKey, World

POINTS = (
    "before the claim",
    "after the claim",
    "before the journal",
    "after the journal",
    "before the write",
    "after the write",
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A delta that was sent, and the true errors before it."""

    row: RowKey
    round: int
    deltas: Sums
    error: Sums
    disturbed: bool
    """Whether something else changed the error since the last look behind it."""

    @property
    def away(self) -> bool:
        """Whether it made any sum worse."""
        error = self.error
        return any(abs(error[of] + delta) > abs(error[of]) for of, delta in self.deltas.items())


@dataclass(slots=True)
class Ports(ManyReads):
    """The tables of the mail server, and of ours; ``strike`` may raise at a point."""

    world: World
    outcome: Callable[[], Outcome] = lambda: Outcome.APPLIED
    strike: Callable[[str], None] = lambda point: None
    slowest: Micros = 0
    sent: list[Sent] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    """Looks that told more than was so."""
    looked_at: dict[RowKey, Micros] = field(default_factory=dict)
    ended: dict[RowKey, Micros] = field(default_factory=dict)
    """When the newest correction's look began, and when the newest look ended."""

    def hiccup(self) -> None:
        """A call takes its time; now and then up to ``slowest`` (L / 2)."""
        draw = self.world.rng.random()
        if draw < 0.1:
            slowest = self.slowest or self.world.climate.latest // 2
            self.world.pass_time(self.world.rng.randrange(slowest))
        elif draw < 0.5:
            self.world.pass_time(self.world.rng.randrange(20 * MILLISECOND))

    def judge(self, row: RowKey, shown: Interval) -> None:
        """Was any sum wrong by that much, on that side, while it was looked at?"""
        errors = list(self.world.errors_between(row, shown.at, self.ended[row]))
        for each, least in shown.bound.items():
            if not any(least * error[each] >= least * least for error in errors):
                told = f"{row} {each} was told to be wrong by {least}, and was by"
                self.false.append(f"{told} {[error[each] for error in errors]}")

    # --- canaries

    def marks(self) -> Marks | None:
        self.hiccup()
        newest = self.world.canary
        self.hiccup()
        return Marks({NODE: newest})

    def watched(self) -> str | None:
        return ""

    # --- the mail server's tables

    def stored(self, tally: Tally, key: UUID | str) -> Sums | None:
        self.hiccup()
        stored = dict(self.world.counters[tally.name, key])
        self.hiccup()
        return stored

    def listed(self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1) -> Iterator[Listed]:
        """By pages: what changes meanwhile is seen on later ones."""
        for uid in sorted(uid for at, uid in self.world.listed if at == mailboxid):
            if not first <= uid <= last:
                continue
            message = self.world.listed[mailboxid, uid][1]
            if message is not None:
                yield message
            if self.world.rng.random() < 0.2:
                self.hiccup()

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        found = {}
        for each in messageids:
            self.hiccup()
            found[each] = tuple(
                _truth_row(mailbox, message)
                for (mailbox, _), message in self.world.truth.items()
                if message.messageid == each
            )
        return found

    def owner(self, mailboxid: UUID) -> QuotaRoot | None:
        return ROOT if mailboxid in self.world.mailboxes else None

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        return frozenset(self.world.mailboxes)

    def listed_in(
        self, mailboxids: Sequence[UUID], uids: UidRange, most: int
    ) -> dict[UUID, list[Listed] | None]:
        self.hiccup()
        return ManyReads.listed_in(self, mailboxids, uids, most)

    def add(self, write: AddToCounter) -> None:
        row = (write.tally.name, write.key)
        self.strike("before the write")
        self.hiccup()
        self._take_down(row, write)
        outcome = self.outcome()
        match outcome:
            case Outcome.TIMED_OUT_THEN_LATE:
                self.world.send(row, write.deltas, [self.world.within(self.world.climate.latest)])
                self.world.changed(row)
            case Outcome.APPLIED | Outcome.APPLIED_BUT_TIMED_OUT:
                self.world.add(row, write.deltas)
            case Outcome.LOST:
                pass
        self.hiccup()
        self.strike("after the write")
        if outcome is not Outcome.APPLIED:
            raise Unreachable("no answer came in time")

    def _take_down(self, row: RowKey, write: AddToCounter) -> None:
        rounds = [each.round for each in self.sent if each.row == row]
        assert write.round not in rounds, f"round {write.round} of {row} was sent twice"
        since = self.looked_at.get(row, 0)
        sent = Sent(
            row,
            write.round,
            write.deltas,
            self.world.error(row),
            any(at >= since for at in self.world.disturbed[row]),
        )
        self.sent.append(sent)
        assert not sent.away or sent.disturbed, f"a correction made it worse: {sent}"


def _truth_row(mailbox: UUID, message: Listed) -> Row:
    return Row(
        {
            "messageid": message.messageid,
            "mailboxid": mailbox,
            "uid": message.uid,
            "modseq": 1,
            "internaldate": DATE,
            "flagseen": message.seen,
            "fullcontentoctets": message.size,
        }
    )


# --- ours


@dataclass(slots=True)
class SlowTallies:
    """`MemoryTallies` of a world; calls take time."""

    ports: Ports

    def marked_in_this_width_since(self, now: Micros) -> Micros:
        return self.ports.world.tallies.marked_in_this_width_since(0)

    def mark(self, touched: Mapping[UUID, Collection[int]], at: Micros) -> None:
        self.ports.world.tallies.mark(touched, at)

    def marked_in(self, hour: int) -> Iterator[UUID]:
        return self.ports.world.tallies.marked_in(hour)

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        self.ports.hiccup()
        book = self.ports.world.tallies.of_mailbox(mailboxid)
        self.ports.hiccup()
        return book

    def of_mailboxes(self, mailboxids: Collection[UUID]) -> dict[UUID, ChunkSums]:
        self.ports.hiccup()
        books = self.ports.world.tallies.of_mailboxes(mailboxids)
        self.ports.hiccup()
        return books

    def counted(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        self.ports.hiccup()
        self.ports.world.tallies.counted(sums, began)

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        self.ports.hiccup()
        self.ports.world.tallies.counted_whole(sums, began)


@dataclass(slots=True)
class PointedRounds:
    """`MemoryRounds`; a claim may not be answered, or be the last thing that a process does."""

    ports: Ports
    claimed: MemoryRounds = field(default_factory=MemoryRounds)

    def current(self, tally: str, key: str) -> int:
        self.ports.hiccup()
        return self.claimed.current(tally, key)

    def claim(self, tally: str, key: str, after: int) -> bool:
        self.ports.hiccup()
        self.ports.strike("before the claim")
        claimed = self.claimed.claim(tally, key, after)
        self.ports.strike("after the claim")
        self.ports.hiccup()
        return claimed


class PointedJournal(MemoryJournal):
    """The same, where a correction is written down."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(lambda: ports.world.now)
        self.ports = ports

    def put(self, finding: Finding) -> None:
        if finding.writes:
            self.ports.strike("before the journal")
        self.ports.hiccup()
        super().put(finding)
        if finding.writes:
            self.ports.strike("after the journal")


# --- a thread of the product, on the world's time


class Until(Event):
    """Is set at a time."""

    def __init__(self, world: World, at: Micros) -> None:
        super().__init__()
        self.world, self.at = world, at

    def is_set(self) -> bool:
        return self.world.now >= self.at

    def wait(self, timeout: float | None = None) -> bool:
        self.world.pass_time(round((timeout or 0) * 1e6))
        return self.is_set()


@dataclass(slots=True)
class Inbox:
    """`SimpleQueue` on the world's time: to wait for something lets it happen."""

    world: World
    waiting: list[BatchSummary] = field(default_factory=list)

    def put(self, came: BatchSummary) -> None:
        self.waiting.append(came)

    def get(self, timeout: float = 0) -> BatchSummary:
        if not self.waiting:
            self.world.pass_time(round(timeout * 1e6))
        return self.get_nowait()

    def get_nowait(self) -> BatchSummary:
        if not self.waiting:
            raise Empty
        return self.waiting.pop(0)
