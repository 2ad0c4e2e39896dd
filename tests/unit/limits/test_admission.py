"""What may be repaired in a batch, row by row of the table; and that breakers are kept as decided.

`test_breakers` has the arithmetic of the limits, this file what the driver makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.lease import Holder, Lease
from reconcilers.declared.projections.deleted_uids import DELETED_UIDS
from reconcilers.limits.breakers import OF_ROWS, Breaker, BreakerLimits
from reconcilers.limits.gate import Admission, admit
from reconcilers.limits.pause import PILOT, Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.words.errors import AlreadyRunning
from reconcilers.words.model import Kind, Micros, Slot, Suspect
from reconcilers.words.waiting import Wait, Waiting, why_of
from streaming.monitoring.metrics import Metrics
from streaming.pipeline import admission
from streaming.pipeline.admission import FEW_KEYS, AdmissionControl
from streaming.pipeline.arrow import WriteTimes
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.pause_report import PauseReport
from streaming.pipeline.suspect_cap import LeftOut, NewDifferences, left_out
from streaming.pipeline.worker import BatchLook
from streaming.settings import Mode
from streaming.steps.pauses import PauseWatch
from tests.builders.found import suspect_at
from tests.builders.rows import FAMILY as ONE_PROJECTION
from tests.builders.rows import MAILBOX, MESSAGE_ID, NOW, PROJECTION, SECOND
from tests.fakes.checkpoints.holds import MemoryHolds
from tests.fakes.checkpoints.lease import MemoryLease
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.pauses import MemoryPauses

FAMILY = replace(ONE_PROJECTION, projections=(PROJECTION, DELETED_UIDS))
MOST, MOST_REMOVALS = 5, 3
LIMITS = BreakerLimits(suspects_per_minute=MOST, removals_per_minute=MOST_REMOVALS)
MINUTE: Micros = 60 * SECOND
OTHER_MAILBOX = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c9")
CLOCK = "the clock of 10.0.0.1 differs from ours by 30.0 s"
TROUBLE = Waiting(Wait.CLOCKS, CLOCK)
FAST = f"{FEW_KEYS} keys were written by clocks ahead by more than half the delay"
MANY_FAST = "30 keys were written by clocks ahead by more than half the delay"
TOO_MANY = f"breaker repairs: {MOST + 1} in a minute, the limit is {MOST}"
REMOVALS = f"breaker removals: {MOST_REMOVALS + 1} in a minute, the limit is {MOST_REMOVALS}"


def suspects(
    number: int,
    kind: Kind | None = Kind.MISSING_ROW,
    projection: str = PROJECTION.name,
    again: bool = False,
) -> list[Suspect]:
    changes: dict[str, Any] = {"projection": projection, "looked_again": again}
    return [suspect_at(uid, kind, [MESSAGE_ID], **changes) for uid in range(1, number + 1)]


def look(*found: list[Suspect], examined: int = 10, fast: int = 0) -> BatchLook:
    all_of_them = [each for some in found for each in some]
    return BatchLook(all_of_them, examined, times=WriteTimes(fast_writers=fast))


@dataclass
class Desk:
    """Admission with everything around it in memory."""

    mode: Mode = Mode.REPAIR
    trouble: Waiting | None = None
    lease: Lease | None = None
    journal: MemoryJournal = field(default_factory=lambda: MemoryJournal(lambda: NOW))
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    pauses: MemoryPauses = field(default_factory=MemoryPauses)
    now: float = 0.0
    control: AdmissionControl = field(init=False)
    findings: OpenFindings = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new process."""
        watch = PauseWatch(self.pauses, lambda: NOW, lambda: self.now)
        paced = HeldLooks(FAMILY.listing.name, LIMITS, lambda: self.now)
        self.findings = OpenFindings(FAMILY, self.journal, self.metrics, "message", MINUTE, paced)
        self.control = AdmissionControl(
            family=FAMILY,
            breakers=BreakerWatch(self.journal, LIMITS, self.metrics),
            mode=self.mode,
            lease=self.lease,
            clock_trouble=lambda: self.trouble,
            metrics=self.metrics,
            pauses=PauseReport(watch, self.metrics),
            findings=self.findings,
        )
        self.control.breakers.recall()

    def admit(self, batch: BatchLook, name: str, at: Micros) -> Admission:
        """What the driver lets through."""
        return admit(self.control.answers(batch, name, at))

    def reasons(self, batch: BatchLook, at: Micros = NOW) -> tuple[str | None, str | None]:
        """Why no repair, why no removal."""
        admitted = self.admit(batch, f"batch of {at}", at)
        return why_of(admitted.repairs_wait), why_of(admitted.removals_wait)

    def shown(self) -> set[str]:
        """The breakers that operators see open."""
        read = self.metrics.registry.get_sample_value
        return {
            each.value for each in OF_ROWS if read("reconciler_breaker_open", {"breaker": each})
        }

    def paused(self) -> dict[str, float | None]:
        """What operators see of the clocks."""
        read = self.metrics.registry.get_sample_value
        reasons = ("clocks", "fast_writers")
        return {each: read("reconciler_repairs_paused", {"reason": each}) for each in reasons}


FEW = look(suspects(MOST))
Case = tuple[BatchLook, Waiting | None, str | None, str | None]


def case(
    batch: BatchLook,
    trouble: Waiting | None = None,
    repairs: str | None = None,
    removals: str | None = None,
) -> Case:
    """A batch, what is wrong with clocks; why no repair, why no removal."""
    return batch, trouble, repairs, removals


def orphans(number: int, projection: str = PROJECTION.name, again: bool = False) -> list[Suspect]:
    return suspects(number, Kind.EXTRA_ROW, projection, again)


ONE_MORE, ONE_ORPHAN_MORE = MOST + 1, MOST_REMOVALS + 1
TABLE = {
    "nothing found": case(look()),
    "as many suspects as a minute may have": case(FEW),
    "one more": case(look(suspects(ONE_MORE)), repairs=TOO_MANY),
    "as many removals": case(look(orphans(MOST_REMOVALS))),
    "one removal more": case(look(orphans(ONE_ORPHAN_MORE)), removals=REMOVALS),
    "too many of both": case(look(suspects(2), orphans(4)), repairs=TOO_MANY, removals=REMOVALS),
    "what comes back is about to be written: it counts": case(
        look(suspects(ONE_MORE, again=True)), repairs=TOO_MANY
    ),
    "removals that come back count as such": case(
        look(orphans(ONE_ORPHAN_MORE, again=True)), removals=REMOVALS
    ),
    "a probe that agrees is no suspect": case(look(suspects(100, None))),
    "a row of an index is no mail: its removal is a repair like any": case(
        look(orphans(MOST, DELETED_UIDS.name))
    ),
    "but it is a suspect": case(look(orphans(ONE_MORE, DELETED_UIDS.name)), repairs=TOO_MANY),
    "a clock that differs": case(FEW, TROUBLE, CLOCK),
    "a clock that differs is told before the breaker": case(
        look(suspects(ONE_MORE)), TROUBLE, CLOCK
    ),
    "a clock that differs is told before fast writers": case(look(fast=FEW_KEYS), TROUBLE, CLOCK),
    "fast writers of some keys": case(look(fast=FEW_KEYS - 1)),
    "fast writers of more": case(look(fast=FEW_KEYS), repairs=FAST),
    "fast writers of less than one key in a hundred": case(look(examined=3_100, fast=30)),
    "fast writers of one key in a hundred": case(look(examined=3_099, fast=30), repairs=MANY_FAST),
    "fast writers are told before the breaker": case(
        look(suspects(ONE_MORE), fast=FEW_KEYS), repairs=FAST
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_a_first_batch_may_repair(case: str) -> None:
    batch, trouble, repairs, removals = TABLE[case]
    desk = Desk(trouble=trouble)
    assert desk.reasons(batch) == (repairs, removals)


@pytest.mark.parametrize("case", TABLE)
def test_what_a_first_batch_opens_stays_open_and_nothing_else_does(case: str) -> None:
    batch, trouble, _repairs, removals = TABLE[case]
    desk = Desk(trouble=trouble)
    desk.reasons(batch)
    desk.trouble = None
    later = desk.reasons(look(), NOW + 10 * MINUTE)
    new = [each for each in batch.suspects if each.kind]
    assert (later[0] is not None) is (len(new) > MOST)
    assert later[1] == removals
    opened = {
        each for each, why in zip((Breaker.REPAIRS, Breaker.REMOVALS), later, strict=True) if why
    }
    assert set(desk.journal.breakers()) == opened
    assert desk.shown() == {each.value for each in opened}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("case", TABLE)
def test_observing_is_told_beside_and_counts_alike(mode: Mode, case: str) -> None:
    batch, trouble, repairs, removals = TABLE[case]
    admitted = Desk(mode, trouble).admit(batch, "batch", NOW)
    assert admitted.observe is (mode is Mode.OBSERVE)
    if admitted.observe and any(each.looked_again for each in batch.suspects):
        repairs = removals = None  # an observer writes nothing of what comes back
    told = why_of(admitted.repairs_wait), why_of(admitted.removals_wait)
    assert told == (repairs, removals)


# --- from batch to batch


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_two_batches_of_one_minute_count_together(desk: Desk) -> None:
    assert desk.reasons(look(suspects(3))) == (None, None)
    assert desk.reasons(look(suspects(3)), NOW + MINUTE - 1) == (TOO_MANY, None)


def test_what_was_found_a_minute_ago_does_not_count(desk: Desk) -> None:
    desk.reasons(look(suspects(MOST)))
    assert desk.reasons(look(suspects(MOST)), NOW + MINUTE) == (None, None)


def test_a_batch_that_is_executed_again_counts_once(desk: Desk) -> None:
    for _ in range(3):
        assert desk.reasons(look(suspects(MOST))) == (None, None)


def test_a_batch_that_opened_a_breaker_finds_it_open_when_it_is_executed_again(desk: Desk) -> None:
    for _ in range(2):
        assert desk.reasons(look(suspects(MOST + 1))) == (TOO_MANY, None)


@pytest.mark.parametrize("breaker", sorted(OF_ROWS))
def test_a_process_that_starts_with_an_open_breaker_keeps_to_it(
    desk: Desk, breaker: Breaker
) -> None:
    desk.journal.open_breaker(breaker, "as it was", NOW - MINUTE)
    desk.begin()
    why = f"breaker {breaker.value}: as it was"
    expected = (why, None) if breaker is Breaker.REPAIRS else (None, why)
    assert desk.reasons(look()) == expected
    assert desk.shown() == {breaker.value}


def test_what_is_held_may_go_in_repair_mode_while_nothing_is_open() -> None:
    assert Desk().control.lets_held_go
    assert not Desk(Mode.OBSERVE).control.lets_held_go


@pytest.mark.parametrize("breaker", sorted(OF_ROWS))
def test_what_is_held_stays_while_any_breaker_is_open(desk: Desk, breaker: Breaker) -> None:
    desk.journal.open_breaker(breaker, "as it was", NOW - MINUTE)
    desk.begin()
    assert not desk.control.lets_held_go


def test_closed_by_a_person_it_is_told_once_and_counts_anew(desk: Desk) -> None:
    desk.reasons(look(suspects(MOST + 1)))
    assert not desk.control.breakers.was_resumed()
    desk.journal.close_breakers(NOW)
    assert desk.control.breakers.was_resumed()
    assert desk.shown() == set()
    assert not desk.control.breakers.was_resumed()
    assert desk.reasons(look(suspects(MOST)), NOW + SECOND) == (None, None)


def test_of_two_pieces_of_one_window_each_opens_a_breaker_of_its_own() -> None:
    """They were read at one moment; what a person has closed was the opening of the first alone."""
    desk, too_many = Desk(), look(suspects(MOST + 1))
    assert desk.admit(too_many, "window 7, 1 of 2", NOW).repairs_wait is not None
    desk.journal.close_breakers(NOW + 1)
    assert desk.control.breakers.was_resumed()
    assert desk.admit(too_many, "window 7, 2 of 2", NOW).repairs_wait is not None
    assert not desk.control.breakers.was_resumed(), "it has closed itself"
    assert set(desk.journal.breakers()) == {Breaker.REPAIRS}
    desk.begin()
    assert desk.admit(look(), "the next", NOW).repairs_wait is not None


def test_a_piece_that_is_executed_again_does_not_undo_a_persons_decision() -> None:
    desk, too_many = Desk(), look(suspects(MOST + 1))
    desk.admit(too_many, "window 7", NOW)
    desk.journal.close_breakers(NOW + 1)
    desk.begin()
    desk.admit(too_many, "window 7", NOW)
    assert desk.control.breakers.was_resumed()


def test_what_another_process_opens_and_closes_holds_here_too() -> None:
    desk, other = Desk(), Desk()
    other.journal = desk.journal
    other.begin()
    other.reasons(look(suspects(MOST + 1)))
    assert not desk.control.breakers.was_resumed()
    assert desk.shown() == other.shown() == {each.value for each in desk.journal.breakers()}
    assert not desk.control.lets_held_go
    desk.journal.close_breakers(NOW)
    assert desk.control.breakers.was_resumed()
    assert desk.shown() == set()


def test_nothing_is_resumed_where_nothing_was_open() -> None:
    assert not Desk().control.breakers.was_resumed()


# --- for those who ask between batches


def test_a_pause_of_everything_is_told_and_one_of_removals_is_not(desk: Desk) -> None:
    assert desk.control.paused_because() is None
    desk.reasons(look(suspects(MOST_REMOVALS + 1, Kind.EXTRA_ROW)))
    assert desk.control.paused_because() is None
    desk.reasons(look(suspects(MOST + 1)), NOW + 2 * MINUTE)
    assert str(desk.control.paused_because()) == TOO_MANY
    desk.trouble = TROUBLE
    assert desk.control.paused_because() == TROUBLE


def test_what_is_outside_a_pilot_counts_for_no_breaker(desk: Desk) -> None:
    elsewhere = Pilot(mailboxes=frozenset({OTHER_MAILBOX}))
    desk.pauses.begin(Pause(PILOT, NOW, "alice", "a first try", pilot=elsewhere))
    assert desk.reasons(look(suspects(MOST + 1))) == (None, None)
    assert desk.control.paused_because() is None
    inside = [
        replace(each, slot=Slot(OTHER_MAILBOX, each.slot.key[1])) for each in suspects(MOST + 1)
    ]
    assert desk.reasons(look(inside), NOW + SECOND) == (TOO_MANY, None)


ALL = f"breaker repairs: 250001 in a minute, the limit is {MOST}"
GONE = f"breaker removals: 250000 in a minute, the limit is {MOST_REMOVALS}"


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        (PROJECTION.name, Kind.MISSING_ROW, (ALL, None)),
        (PROJECTION.name, Kind.EXTRA_ROW, (ALL, GONE)),
        (DELETED_UIDS.name, Kind.EXTRA_ROW, (ALL, None)),
        (PROJECTION.name, Kind.DUPLICATE_UID, (None, None)),
    ],
)
def test_suspects_that_did_not_travel_count_for_the_breakers(
    desk: Desk, name: str, kind: Kind, expected: tuple[str | None, str | None]
) -> None:
    uncounted = LeftOut(NewDifferences({(name, kind): 250_000}))
    found = replace(look(suspects(1)), left_out=[uncounted], examined=400_000)
    assert desk.reasons(found) == expected


def pickled(found: list[Suspect]) -> LeftOut:
    (part,) = left_out(FAMILY, MemoryHolds(), found, ready=len(found))
    return part


def test_what_did_not_travel_does_so_unless_repairs_are_held(desk: Desk) -> None:
    """It was published, too: when it comes back it counts no second time."""
    first, *others = suspects(MOST - 1)
    found = replace(look([first]), left_out=[pickled(others[:2]), pickled(others[2:])])
    assert desk.reasons(found) == (None, None)
    assert found.suspects == [first, *others]
    assert desk.reasons(look(suspects(MOST - 1, again=True)), NOW + SECOND) == (None, None)
    assert (
        desk.reasons(look(suspects(1, projection=DELETED_UIDS.name)), NOW + SECOND + 1)[0] is None
    )


def test_while_repairs_are_held_as_many_are_taken_as_still_travel(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST", 3)
    first, *others = suspects(MOST + 1)
    parts = [pickled(others[:2]), pickled(others[2:3]), pickled(others[3:])]
    found = replace(look([first]), left_out=parts)
    assert desk.reasons(found) == (TOO_MANY, None)
    assert (found.suspects, found.left_out) == ([first, *others[:2]], parts[1:])
    found = replace(look(suspects(3)), left_out=parts[1:2])
    assert desk.reasons(found, NOW + SECOND)[0] == TOO_MANY, "it is open"
    assert found.left_out == parts[1:2]


def test_removals_that_open_their_own_breaker_alone_travel(desk: Desk) -> None:
    """Otherwise the others among them would count once more when they come back."""
    first, *others = suspects(MOST_REMOVALS + 1, Kind.EXTRA_ROW)
    found = replace(look([first]), left_out=[pickled(others)])
    assert desk.reasons(found) == (None, REMOVALS)
    assert found.suspects == [first, *others]


def test_those_outside_a_pilot_count_for_none(desk: Desk) -> None:
    counted = NewDifferences({(PROJECTION.name, Kind.MISSING_ROW): 250_000})
    found = replace(look(), left_out=[LeftOut(counted)])
    elsewhere = Pilot(mailboxes=frozenset({OTHER_MAILBOX}))
    desk.pauses.begin(Pause(PILOT, NOW, "alice", "a first try", pilot=elsewhere))
    assert desk.reasons(found) == (None, None)


def test_those_inside_a_pilot_count_as_soon_as_they_are_taken(desk: Desk) -> None:
    first, *others = suspects(MOST + 9)
    desk.pauses.begin(
        Pause(PILOT, NOW, "alice", "a first try", pilot=Pilot(mailboxes=frozenset({MAILBOX})))
    )
    parts = list(left_out(FAMILY, MemoryHolds(), others, ready=MOST))
    assert [each.number for each in parts] == [MOST, 0]
    assert desk.reasons(replace(look([first]), left_out=parts)) == (TOO_MANY, None)


def test_fast_writers_pause_their_batch_and_no_other(desk: Desk) -> None:
    assert desk.reasons(look(fast=FEW_KEYS)) == (FAST, None)
    assert desk.control.paused_because() is None
    assert desk.reasons(look(), NOW + SECOND) == (None, None)


def test_what_pauses_repairs_is_shown_until_it_has_passed(desk: Desk) -> None:
    desk.trouble = TROUBLE
    desk.reasons(look(fast=FEW_KEYS))
    assert desk.paused() == {"clocks": 1, "fast_writers": 1}
    desk.trouble = None
    assert desk.control.paused_because() is None
    assert desk.paused() == {"clocks": 0, "fast_writers": 1}
    desk.reasons(look(), NOW + SECOND)
    assert desk.paused() == {"clocks": 0, "fast_writers": 0}


# --- the lease


def test_without_the_lease_nothing_is_admitted() -> None:
    now, lasts = [0.0], timedelta(seconds=60)
    store = MemoryLease(lambda: now[0])
    ours = Lease(store, "james/repair", Holder("ours", "a:1"), lasts, lambda: now[0])
    ours.acquire()
    desk = Desk(lease=ours)
    assert desk.reasons(look()) == (None, None)
    store.leave("james/repair", Holder("ours", "a:1"))
    Lease(store, "james/repair", Holder("theirs", "b:1"), lasts, lambda: now[0]).acquire()
    now[0] += 50
    with pytest.raises(AlreadyRunning):
        desk.admit(look(suspects(MOST + 1)), "batch", NOW)
    assert not desk.journal.breakers()
