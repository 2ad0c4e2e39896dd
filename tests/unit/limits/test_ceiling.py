"""The ceiling on repairs a minute: what is above it is held, comes back, and is repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.clock import to_seconds
from reconcilers.declared.writes import Write
from reconcilers.limits.breakers import BreakerLimits
from reconcilers.limits.ceiling import MINUTE, Ceiling, Written
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Suspect, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.pipeline.batches import Batches
from streaming.pipeline.ceiling import WriteCeiling
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.steps.outcome import Outcome, Repaired
from streaming.steps.permit import ABOVE, Permit
from tests.builders.examining import examiner
from tests.builders.found import finding_at, suspect_at
from tests.builders.permits import nothing_paused
from tests.builders.rows import FAMILY, LONG_AGO, NOW, PROJECTION, SECOND, truth
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables
from tests.unit.stream.test_batches import MemoryPorts, batches

REPAIRS = Admission()
MOST = 2_000
"""The setting's default."""


# --- the rule


def test_below_the_ceiling_nothing_waits() -> None:
    assert [Ceiling(3, 10).wait(before) for before in range(4)] == [0, 0, 0, MINUTE]


def test_what_is_above_comes_back_in_as_many_minutes_as_it_needs() -> None:
    waits = [Ceiling(1, 2).wait(before) // MINUTE for before in range(7)]
    assert waits == [0, 1, 1, 2, 2, 3, 3]
    assert Ceiling(0, 1).wait(0) == MINUTE


@given(
    now=st.integers(0, 5_000),
    a_minute=st.integers(1, 5_000),
    sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=8),
)
def test_shares_may_write_what_the_slice_may_and_no_more(
    now: int, a_minute: int, sizes: list[int]
) -> None:
    shares = Ceiling(now, a_minute).shared(sizes)
    assert sum(each.now for each in shares) == (now if sum(sizes) else 0)
    assert all(each.a_minute >= 1 for each in shares)


def test_one_repair_a_minute_is_one_for_somebody() -> None:
    assert [each.now for each in Ceiling(1, 1).shared([5, 5])] == [0, 1]


@given(
    slices=st.lists(
        st.tuples(st.integers(0, 40 * SECOND), st.integers(0, 30), st.booleans()), max_size=30
    ),
    most=st.integers(1, 40),
)
def test_no_minute_has_more_repairs_than_it_may(
    slices: list[tuple[Micros, int, bool]], most: int
) -> None:
    """Whether or not the driver hears of a slice's end."""
    written, done, now = Written(), [], 0
    for later, suspects, heard in slices:
        now += later
        repairs = min(written.left(most, now), suspects)
        written = written.reserved(repairs, now)
        done.append((now, repairs))
        if heard:
            written = written.settled(repairs, now)
        assert sum(number for at, number in done if now - at < MINUTE) <= most


def test_what_a_slice_did_not_use_the_next_may() -> None:
    written = Written().reserved(10, 0)
    assert written.left(10, SECOND) == 0
    assert written.settled(4, SECOND).left(10, SECOND) == 6
    assert written.settled(4, SECOND).left(10, SECOND + MINUTE) == 10


# --- in the driver


def message(uid: int) -> UUID:
    """Of which a place has no row."""
    return UUID(int=uid, version=1)


def suspect(uid: int) -> Suspect:
    return suspect_at(uid, sources=[message(uid)], oldest=LONG_AGO)


@pytest.mark.parametrize(
    "admission",
    [Admission(observe=True), Admission(repairs_wait=Waiting(Wait.CLOCKS, "clocks differ"))],
    ids=["observe", ""],
)
def test_where_nothing_is_written_nothing_counts(admission: Admission) -> None:
    ceiling = WriteCeiling(5, lambda: 0.0)
    ceiling.reserve(admission, 900)
    assert ceiling.left() == Ceiling(5, 5)
    ceiling.settle([])
    assert ceiling.left() == Ceiling(5, 5)


def test_a_slice_that_failed_counts_as_if_all_of_it_was_written() -> None:
    ceiling = WriteCeiling(1_000, lambda: 0.0)
    ceiling.reserve(Admission(ceiling=ceiling.left()), 900)
    assert ceiling.left() == Ceiling(100, 1_000)


@pytest.mark.parametrize(("again", "left"), [(False, 999), (True, 100)])
def test_a_slice_of_which_an_attempt_was_lost_counts_with_all_that_was_admitted(
    again: bool, left: int
) -> None:
    stream = Stream()
    stream.decisions = replace(stream.decisions, ceiling=WriteCeiling(1_000, lambda: 0.0))
    found = [suspect(uid) for uid in range(900)]
    piece = Slice({("t", 0): 1}, {("t", 0): 2}, NOW, NOW)
    stream.decisions.admit(BatchLook(found, examined=20_000), piece)
    one = Outcome(found[0].slot, Action.REPAIR, held_until(found[0].slot, None))
    stream.decisions.record_outcomes(Repaired([one], again))
    assert stream.decisions.ceiling.left() == Ceiling(left, 1_000)


@dataclass
class Stream:
    """Slices through the driver's decisions, a worker's permit, and the examiner itself."""

    ports: MemoryPorts = field(default_factory=lambda: MemoryPorts(MemoryJournal()))
    now: Micros = NOW
    written: list[tuple[Micros, Slot]] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        made = batches(self.ports)
        made.admission.breakers.limits = BreakerLimits(1_000, 1.0, 1_000, 1.0)
        self.decisions: Batches = replace(
            made, ceiling=WriteCeiling(MOST, lambda: to_seconds(self.now - NOW))
        )
        self.decisions.start()

    def settle(self, found: list[Suspect], read_at: Micros) -> list[Outcome]:
        self.number += 1
        piece = Slice({("t", 0): self.number}, {("t", 0): self.number + 1}, read_at, read_at)
        admission = self.decisions.admit(BatchLook(found, examined=20_000), piece)
        parts = [found[::2], found[1::2]]
        shares = zip(admission.shared([len(each) for each in parts]), parts, strict=True)
        outcomes = [each for share in shares for each in self._worker(*share)]
        self.decisions.record_outcomes(Repaired(outcomes))
        return outcomes

    def _worker(self, admission: Admission, found: list[Suspect]) -> Iterator[Outcome]:
        """As the examiner does: `test_a_worker_holds_what_is_above_and_says_until_when`."""
        permit = Permit(admission, lambda: None, nothing_paused)
        for each in found:
            wait = permit.wait()
            if wait:
                yield Outcome(each.slot, Action.KEEP, held_until(each.slot, self.now + wait))
            else:
                self.written.append((self.now, each.slot))
                yield Outcome(each.slot, Action.REPAIR, held_until(each.slot, None))

    def due(self) -> list[Suspect]:
        """What comes back now, but for what was written: it holds."""
        again = {wake.key[1] for wake in self.decisions.later_looks(self.now)}
        again -= {slot.key[1] for _, slot in self.written}
        return [replace(each, looked_again=True) for each in SUSPECTS if each.slot.key[1] in again]


def held_until(slot: Slot, next_look: Micros | None) -> Finding:
    if next_look is None:
        return finding_at(slot)
    return finding_at(slot, state=State.HELD, next_look=next_look, waits=ABOVE)


SUSPECTS = [suspect(uid) for uid in range(9_000)]
SLICES = [SUSPECTS[start : start + 900] for start in range(0, 9_000, 900)]


@pytest.fixture
def stream() -> Stream:
    return Stream()


def test_ten_slices_of_900_read_a_minute_apart_open_nothing_and_are_written_minute_by_minute(
    stream: Stream,
) -> None:
    """They waited for one another, and are looked at within ten seconds."""
    for number, found in enumerate(SLICES):
        stream.settle(found, NOW - (10 - number) * MINUTE)
        stream.now += SECOND
    assert stream.ports.journal.breakers() == {}
    assert len(stream.written) == MOST
    held = [each for each in stream.decisions.open_findings.index if each.next_look]
    waiting = [each for each in held if each.state is State.HELD]
    assert len(waiting) == 9_000 - MOST
    for _ in range(9):
        stream.now += MINUTE
        stream.settle(stream.due(), stream.now)
    assert len(stream.written) == 9_000
    assert len({slot for _, slot in stream.written}) == 9_000, "each once, by itself"
    times = Counter(at for at, _ in stream.written)
    for at in times:
        assert sum(times[each] for each in times if at <= each < at + MINUTE) <= MOST
    assert stream.ports.journal.breakers() == {}


class Killed(BaseException):
    """The end of a process."""


@dataclass
class KillsAtWrite(MemoryTables):
    """Ends the process that writes, before its second write."""

    def apply(self, writes: Sequence[Write]) -> None:
        if self.applied:
            raise Killed
        super().apply(writes)


FOUR = Admission(ceiling=Ceiling(4, 100))


@pytest.mark.parametrize(
    ("admitted", "repairs"),
    [(FOUR.used_up(), 2), (Admission(ceiling=Ceiling(1, 100)), 1)],
    ids=["another attempt", "read again, in another minute"],
)
def test_another_attempt_repairs_what_the_lost_one_has_begun_and_nothing_more(
    admitted: Admission, repairs: int
) -> None:
    """A slice that is read again has a ceiling of its own, which counts all."""
    found = [suspect(uid) for uid in range(6)]
    truths: dict[KeyValue, tuple[Row, ...]] = {
        message(uid): (truth(uid=uid, messageid=message(uid)),) for uid in range(6)
    }
    tables, journal = KillsAtWrite(truths=truths), MemoryJournal()

    def attempt(admission: Admission, tables: MemoryTables) -> list[Outcome]:
        permit = Permit(admission, lambda: None, nothing_paused)
        return list(
            examiner(
                *(FAMILY, PROJECTION, tables, MemoryLineage(), journal),
                publish=lambda _wakes: None,
                clock=lambda: NOW,
            ).examine(found, permit, "slice")
        )

    with pytest.raises(Killed):
        attempt(FOUR, tables)
    outcomes = attempt(admitted, MemoryTables(truths=truths, rows=tables.rows))
    held = len(found) - repairs
    assert [each.action for each in outcomes] == [Action.REPAIR] * repairs + [Action.KEEP] * held
    assert [each.finding.attempts for each in outcomes if each.finding] == [1] * 2 + [0] * 4


def test_a_worker_holds_what_is_above_and_says_until_when() -> None:
    found = [suspect(uid) for uid in range(6)]
    tables = MemoryTables(
        truths={
            message(uid): (truth(uid=uid, messageid=message(uid)),) for uid in range(len(found))
        }
    )
    published: list[Wake] = []
    permit = Permit(Admission(ceiling=Ceiling(2, 3)), lambda: None, nothing_paused)
    outcomes = examiner(
        *(FAMILY, PROJECTION, tables, MemoryLineage(), MemoryJournal()),
        publish=published.extend,
        clock=lambda: NOW,
    ).examine(found, permit, "slice")
    assert [each.action for each in outcomes] == [Action.REPAIR] * 2 + [Action.KEEP] * 4
    held = [each.finding for each in outcomes[2:] if each.finding]
    assert {each.state for each in held} == {State.HELD}
    assert [each.next_look for each in held] == [NOW + MINUTE] * 3 + [NOW + 2 * MINUTE]
    assert {each.waits for each in held} == {ABOVE}
    assert {each.key[1] for each in published} == {0, 1}
