"""A mail server with its counters, and change capture, on a logical clock (µs).

Writers do as James does: the truth first, then the projection, the counters last, each some time
after the other. A counter update may be lost, or doubled by a retry after a timeout. Every change
becomes events, which reach the settle window some time later and come out of it a delay after they
were read: only then is its chunk marked, and only then does it count as a change.

`World` knows what no reconciler can: by how much each counter is wrong, updates under way included.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import count
from uuid import UUID

from reconcilers.capture.frontier import Canary, Echo, Frontier, FrontierRules, Node
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Listed, QuotaRoot, Sum, Sums, Tally, summed
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Micros, Slot
from streaming.counters.batch_summary import BatchSummary
from tests.builders.canaries import of_slice
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.property.mail import MAILBOXES, MILLISECOND, SECOND, START, time_uuid

HOUR: Micros = 3_600 * SECOND

FAMILIES = (MAILBOX_TALLY, replace(USER_TALLY, tallies=(CURRENT_QUOTA,)))
ROOT = QuotaRoot("#private", "bob")
WIDTH = 4
"""UIDs a chunk: few, so that small mailboxes have several."""

NODE: Node = "node"
TOPIC, PARTITIONS = "james", 2
LANES = [(TOPIC, number) for number in range(PARTITIONS)]
NEVER = FrontierRules(lost_after=10**15, longest_pause=10**15)

Place = tuple[UUID, int]
Event = tuple[Place, UUID | None] | Echo
"""As it comes out of the settle window: a changed row with its message, or a canary."""
RowKey = tuple[str, UUID | str]


@dataclass(frozen=True, slots=True)
class Climate:
    """D, W, the time that capture takes at most, that changes are gathered for one look; µs.

    ``written`` is how long after the truth a counter is written at the latest: no more than D. A
    quota is written by a listener, which may be ``listener`` behind, and is looked at accordingly.
    """

    delay: Micros
    window: Micros
    latest: Micros
    gather: Micros
    written: Micros
    listener: Micros = 0

    @property
    def cycle(self) -> Micros:
        """A look and the wait for what was under way, at the longest."""
        return 2 * self.delay + self.window + 6 * self.latest + self.gather + 15 * SECOND

    @property
    def idle(self) -> Micros:
        """From one canary to the next, and between two turns of a thread that has nothing to do.

        A part of the delay: else a run costs the more the longer its delay is, and plays no more.
        """
        return max(SECOND, self.delay // 20)


CLIMATES = (
    Climate(45 * SECOND, 5 * SECOND, 10 * SECOND, gather=60 * SECOND, written=10 * SECOND),
    Climate(45 * SECOND, 5 * SECOND, 4 * SECOND, gather=5 * SECOND, written=45 * SECOND),
    Climate(5 * SECOND, SECOND, 2 * SECOND, gather=2 * SECOND, written=2 * SECOND),
    Climate(3 * SECOND, 3 * SECOND, 3 * SECOND, gather=SECOND, written=3 * SECOND),
)


class Fate(Enum):
    """What becomes of a counter update."""

    COUNTED = "counted"
    LOST = "lost"
    DOUBLED = "doubled"
    """Applied, reported as timed out, and sent again."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How often things go wrong, as shares, and how busy the writers are."""

    lost: float = 0.0
    doubled: float = 0.0
    sent_twice: float = 0.2
    repeated: float = 0.0
    """Batches that are executed again, and told of again; some are told of much later."""
    writers: int = 1
    busy: float = 0.5


@dataclass(slots=True)
class World:
    """Tables, changes under way, and the settle window."""

    climate: Climate
    weather: Weather
    rng: random.Random
    mailboxes: Sequence[UUID] = MAILBOXES
    now: Micros = START
    truth: dict[Place, Listed] = field(default_factory=dict)
    listed: dict[Place, tuple[int, Listed | None]] = field(default_factory=dict)
    counters: dict[RowKey, Counter[Sum]] = field(default_factory=dict)
    under_way: dict[RowKey, Counter[Sum]] = field(default_factory=dict)
    errors: dict[RowKey, list[tuple[Micros, Sums]]] = field(default_factory=dict)
    disturbed: dict[RowKey, list[Micros]] = field(default_factory=lambda: defaultdict(list))
    tallies: MemoryTallies = field(default_factory=MemoryTallies)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    streams: list[Callable[[BatchSummary], None]] = field(default_factory=list)
    unseen_by_capture: Callable[[], bool] = lambda: False
    unlisted: Callable[[], bool] = lambda: False
    pauses: Callable[[], Micros] = lambda: 0
    captured_in: Micros = field(init=False)
    canary: Micros = 0
    """The number of the newest that can be read."""
    straggles: Callable[[], Micros] = lambda: 0
    listens_in: Callable[[], Micros] = lambda: 0
    """How long after it could a quota is written: the backlog before its listener."""
    met: Counter[str] = field(default_factory=Counter)
    _in_flight: list[tuple[Micros, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _uids: dict[UUID, int] = field(default_factory=lambda: defaultdict(int))
    _leaving: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lineage.watch_from(START - HOUR)  # the mailboxes were made since: all is remembered
        self.captured_in = self.climate.latest
        for key, tally in self.rows():
            self.counters[key] = Counter(dict.fromkeys(tally.cells, 0))
            self.under_way[key] = Counter()
            self.errors[key] = [(self.now, dict.fromkeys(tally.cells, 0))]

    # --- time ---------------------------------------------------------------------------------

    def pass_time(self, duration: Micros) -> None:
        """Move the clock on; what comes in between happens. Nested, it may go further."""
        until = self.now + duration
        while self._in_flight and self._in_flight[0][0] <= until:
            arrival, _, action = heapq.heappop(self._in_flight)
            self.now = max(self.now, arrival)
            action()
        self.now = max(self.now, until)

    def later(self, delay: Micros, action: Callable[[], None]) -> None:
        """Do something when this much time has passed."""
        heapq.heappush(self._in_flight, (self.now + delay, next(self._numbers), action))

    def within(self, most: Micros) -> Micros:
        """A delay: mostly short, at times as long as it may be."""
        return self.rng.choice((0, 10 * MILLISECOND, self.rng.randrange(most + 1), most))

    # --- counters -----------------------------------------------------------------------------

    def rows(self) -> list[tuple[RowKey, Tally]]:
        """Every counter row that there is."""
        of_mailboxes = [((MAILBOX_COUNTERS.name, each), MAILBOX_COUNTERS) for each in MAILBOXES]
        return [*of_mailboxes, ((CURRENT_QUOTA.name, str(ROOT)), CURRENT_QUOTA)]

    def right(self, key: RowKey) -> Sums:
        """What a row should hold."""
        mailboxes = self.mailboxes if isinstance(key[1], str) else (key[1],)
        return summed(each for (mailbox, _), each in self.truth.items() if mailbox in mailboxes)

    def error(self, key: RowKey) -> Sums:
        """By how much a row is wrong, once all that is under way has arrived."""
        right, stored, coming = self.right(key), self.counters[key], self.under_way[key]
        return {each: stored[each] + coming[each] - right[each] for each in stored}

    def changed(self, key: RowKey) -> None:
        """Remember the error, if it is another one now."""
        error = self.error(key)
        if error != self.errors[key][-1][1]:
            self.errors[key].append((self.now, error))

    def errors_between(self, key: RowKey, begin: Micros, end: Micros) -> Iterator[Sums]:
        """The errors that a row had in that time."""
        history = self.errors[key]
        for number, (at, error) in enumerate(history):
            until = history[number + 1][0] if number + 1 < len(history) else self.now
            if at <= end and begin <= until:
                yield error

    def disturb(self, key: RowKey) -> None:
        """Something else than the reconciler has made it wrong, or right."""
        self.disturbed[key].append(self.now)
        self.changed(key)

    def add(self, key: RowKey, deltas: Sums) -> None:
        """A counter update is applied."""
        self.counters[key].update(deltas)
        self.changed(key)

    def send(self, key: RowKey, deltas: Sums, after: Sequence[Micros]) -> None:
        """Updates that are on their way, each arriving after so long."""
        for delay in after:
            self.under_way[key].update(deltas)
            self.later(delay, lambda: self._arrive(key, deltas))

    def _arrive(self, key: RowKey, deltas: Sums) -> None:
        self.under_way[key].subtract(deltas)
        self.add(key, deltas)

    # --- users --------------------------------------------------------------------------------

    def fill(self, messages: int) -> None:
        """Mail of long ago: all of it counted and remembered."""
        for _ in range(messages):
            mailbox = self.rng.choice(self.mailboxes)
            message = self._new(mailbox, time_uuid(START - SECOND, next(self._numbers)))
            self.truth[mailbox, message.uid] = message
            self.listed[mailbox, message.uid] = (0, message)
            self.lineage.remember(
                [Entry(message.messageid, Slot(mailbox, message.uid), in_truth=True)]
            )
        for key, _ in self.rows():
            for each in self.counters[key]:
                self.counters[key][each] = self.right(key)[each]

    def forget_the_past(self, unlisted: float) -> None:
        """Watching begins now: of the mail that there is nothing is known, and some has no row."""
        self.lineage = MemoryLineage()
        self.lineage.watch_from(self.now)
        for place in self.truth:
            if self.rng.random() < unlisted:
                self.listed.pop(place)
                self.met["lost long ago"] += 1

    def _new(self, mailbox: UUID, messageid: UUID) -> Listed:
        self._uids[mailbox] += self.rng.choice((1, 1, 1, WIDTH))
        size = self.rng.randrange(1, 1000)
        return Listed(self._uids[mailbox], messageid, self.rng.random() < 0.3, size)

    def act(self) -> None:
        """One operation of some user."""
        there = [place for place in self.truth if place not in self._leaving]
        draw = self.rng.random()
        if not there or draw < 0.4:
            mailbox = self.rng.choice(self.mailboxes)
            self.append(mailbox, time_uuid(self.now, next(self._numbers)))
        elif draw < 0.5:
            mailbox, uid = self.rng.choice(there)
            others = [each for each in self.mailboxes if each != mailbox]
            if others:
                self.append(others[0], self.truth[mailbox, uid].messageid)
        elif draw < 0.75:
            self.flag(self.rng.choice(there))
        else:
            self.expunge(self.rng.choice(there))

    def append(self, mailbox: UUID, messageid: UUID) -> None:
        """A new message, or the copy of one."""
        self._change((mailbox, (message := self._new(mailbox, messageid)).uid), message)

    def flag(self, place: Place) -> None:
        """Seen, or unseen again."""
        had = self.truth[place]
        self._change(place, Listed(had.uid, had.messageid, not had.seen, had.size))

    def expunge(self, place: Place) -> None:
        """Both sides in parallel: either may be first."""
        if self.rng.random() < 0.5:
            self._change(place, None)
            return
        self._leaving.add(place)
        self._list(place, None, self.within(self.climate.latest // 2))
        self.later(self.within(self.climate.latest // 2), lambda: self._gone(place))

    def _gone(self, place: Place) -> None:
        self._leaving.discard(place)
        self._true(place, None)

    def _change(self, place: Place, message: Listed | None) -> None:
        """The truth now; then the projection, and after it the counters."""
        listed_in = self.within(self.climate.written)
        captured = self._true(place, message, listed_in)
        if self.unlisted():
            self.met["unlisted"] += 1
            listed_in = self.rng.randrange(6 * self.climate.cycle)  # when it is repaired
        self._list(place, message, listed_in, captured)

    def _true(self, place: Place, message: Listed | None, listed_in: Micros = 0) -> bool:
        """The truth and the counters; whether change capture sees it."""
        before = self.truth.pop(place, None)
        if message is not None:
            self.truth[place] = message
        had, has = (summed([each] if each else []) for each in (before, message))
        captured = not self.unseen_by_capture()
        self.met["unseen by capture"] += not captured
        if captured:
            self._capture(place, message or before)
        self._count(place[0], {each: has[each] - had[each] for each in Sum}, listed_in)
        return captured

    def _count(self, mailbox: UUID, deltas: Sums, listed_in: Micros) -> None:
        for key, tally in self.rows():
            if key[1] not in (mailbox, str(ROOT)):
                continue
            ours = {each: deltas[each] for each in tally.cells if deltas[each]}
            behind = self.listens_in() if key[1] == str(ROOT) else 0
            after = [max(listed_in, self.within(self.climate.written)) + self.straggles() + behind]
            fate = self._fate()
            if fate is Fate.LOST:
                after = []
            elif fate is Fate.DOUBLED:
                after.append(self.within(self.climate.written))
            if ours:
                self.send(key, ours, after)
            if ours and fate is not Fate.COUNTED:
                self.met[fate.value] += 1
                self.disturb(key)
            assert fate is not Fate.COUNTED or self.error(key) == self.errors[key][-1][1]

    def _fate(self) -> Fate:
        draw = self.rng.random()
        if draw < self.weather.lost:
            return Fate.LOST
        return Fate.DOUBLED if draw < self.weather.lost + self.weather.doubled else Fate.COUNTED

    def _list(
        self, place: Place, message: Listed | None, after: Micros, captured: object = True
    ) -> None:
        """A statement to the projection: of two the one sent later wins, whichever comes first."""
        number = next(self._numbers)

        def arrive() -> None:
            had = self.listed.get(place, (0, None))
            if had[0] < number:
                self.listed[place] = (number, message)
            if captured:
                self._capture(place, message or had[1])

        self.later(after, arrive)

    # --- change capture, and the settle window --------------------------------------------------

    _arrived: list[Event] = field(default_factory=list)
    _windows: dict[int, list[Event]] = field(default_factory=dict)
    _watermark: Micros = 0
    _free_at: Counter[int] = field(default_factory=Counter)
    _frontier: Frontier = field(default_factory=lambda: Frontier(NEVER))

    def _capture(self, place: Place, message: Listed | None) -> None:
        """An event; some are sent again, at any time."""
        event = (place, message.messageid if message else None)
        self._publish(event, self.rng.randrange(PARTITIONS))
        if self.rng.random() < self.weather.sent_twice:
            self.later(self.within(self.captured_in), lambda: self._arrived.append(event))

    def _publish(self, event: Event, partition: int) -> None:
        """Capture takes its time; what was written first comes first in its partition."""
        free = max(self._free_at[partition], self.now + self.within(self.captured_in))
        self._free_at[partition] = free
        self.later(free - self.now, lambda: self._arrived.append(event))

    def _sing(self, previous: Micros) -> None:
        """The write of some canaries is not answered, and is done later or never."""
        canary = Canary(NODE, self.now, previous, at=self.now)
        draw = self.rng.random()

        def arrive() -> None:
            self.canary = max(self.canary, canary.number)
            for topic, partition in LANES:
                self._publish(Echo(canary, topic, partition), partition)

        answered = draw < 0.9
        done_in = self.within(20 * MILLISECOND if answered else 2 * SECOND)
        if answered or draw < 0.95:
            self.later(done_in, arrive)
        newest = canary.number if answered else previous
        self.later(self.climate.idle + self.within(SECOND), lambda: self._sing(newest))

    def batch(self) -> None:
        """Read what has arrived; let windows out that the watermark has passed; tell of them."""
        window, began = self.climate.window, self.now
        self._windows.setdefault(began // window, []).extend(self._arrived)
        self._arrived.clear()
        settled = self._watermark // window * window
        out = [
            event
            for number in sorted(self._windows)
            if (number + 1) * window <= settled
            for event in self._windows.pop(number)
        ]
        self._watermark = began - self.climate.delay
        echoes = [event for event in out if isinstance(event, Echo)]
        rows = [event for event in out if not isinstance(event, Echo)]
        self._frontier.hear(of_slice(*echoes), began)
        took = self.within(self.climate.latest // 2)
        marked_in = self.rng.randrange(took + 1)
        changes = Counter(mailbox for (mailbox, _), _ in rows)
        self.later(marked_in, lambda: self._mark(rows, began))
        came = BatchSummary(changes, self._frontier.proven(LANES))
        self.later(took, lambda: self._ended(came))
        gap = max(self.rng.randrange(self.climate.latest), took) + 1 + self.pauses()
        self.later(gap, self.batch)

    def _mark(self, out: list[tuple[Place, UUID | None]], began: Micros) -> None:
        touched: dict[UUID, set[int]] = defaultdict(set)
        for (mailbox, uid), messageid in out:
            touched[mailbox].add(uid // WIDTH)
            if messageid is not None:
                self.lineage.remember([Entry(messageid, Slot(mailbox, uid), in_truth=True)])
        self.tallies.mark(touched, began)

    def _ended(self, came: BatchSummary) -> None:
        for each in list(self.streams):
            each(came)
        if self.rng.random() < self.weather.repeated:
            self.met["told again"] += 1
            after = self.rng.choice((0, self.climate.delay, 4 * self.climate.cycle))
            self.later(self.rng.randrange(after + 1), lambda: self._ended(came))

    # --- the mail server repairs by read --------------------------------------------------------

    def read_repair(self, mailbox: UUID, doubles: int = 0) -> None:
        """Count the projection, then reset the counters in two statements, each a while later.

        It counts so many messages twice, as copies within a mailbox.
        """
        key = (MAILBOX_COUNTERS.name, mailbox)
        counted = summed(
            each for (at, _), (_, each) in self.listed.items() if at == mailbox and each
        )
        target = {each: counted[each] + doubles for each in self.counters[key]}

        def reset() -> None:
            stored = dict(self.counters[key])
            if stored == target:
                return
            self.met["read repairs"] += 1
            self._overwrite(key, {each: -value for each, value in stored.items()})
            pause = self.within(20 * MILLISECOND)
            self.later(pause, lambda: self._overwrite(key, target))

        self.later(self.within(20 * MILLISECOND), reset)

    def _overwrite(self, key: RowKey, deltas: Sums) -> None:
        self.add(key, deltas)
        self.disturb(key)

    def repair_now_and_then(self, until: Micros, most: Micros, doubles: int = 0) -> None:
        """A repair by read of each mailbox whenever so much time at most has passed."""
        if self.now < until:
            for mailbox in self.mailboxes:
                self.read_repair(mailbox, doubles)
            again = partial(self.repair_now_and_then, until, most, doubles)
            self.later(self.rng.randrange(most) + 1, again)

    # --- traffic ------------------------------------------------------------------------------

    def begin(self, until: Micros) -> None:
        """Writers and the stream begin; writers end at a time."""
        self._sing(previous=0)
        self.batch()
        for _ in range(self.weather.writers):
            self.later(self._gap(), lambda: self._write(until))

    def _write(self, until: Micros) -> None:
        if self.now < until:
            self.act()
            self.later(self._gap(), lambda: self._write(until))

    def _gap(self) -> Micros:
        """Bursts, steady traffic, and times of quiet that are longer than a look."""
        climate = self.climate
        if self.rng.random() < self.weather.busy:
            most = self.rng.choice((20 * MILLISECOND, climate.latest, climate.delay))
        else:
            most = 4 * climate.cycle
        return self.rng.randrange(most) + 1
