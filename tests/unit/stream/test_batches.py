"""What the driver decides for a batch: a breaker that cannot be journalled, expired cells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Bookmark, KafkaIds
from checkpoints.expiries import KEPT_AFTER_DUE, Expiry
from checkpoints.lease import Holder, Lease
from reconcilers.limits.breakers import OF_ROWS, Breaker, BreakerLimits
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import AlreadyRunning, Unreachable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import KeyValue, Kind, Micros, Slot, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.canary.alone import CanariesAlone
from streaming.canary.memory_watch import MemoryReport, MemoryWatch
from streaming.canary.watch import FrontierWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.admission import AdmissionControl
from streaming.pipeline.batch_record import BatchRecord, StreamPosition
from streaming.pipeline.batches import Batches
from streaming.pipeline.behind import BehindWatch
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.ceiling import WriteCeiling
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.pause_report import PauseReport
from streaming.pipeline.scheduled_looks import ExpiredCells, scheduled_wake
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.settings import Mode
from streaming.steps.outcome import Outcome, Repaired
from streaming.steps.pauses import PauseWatch
from streaming.steps.permit import ABOVE
from streaming.topics import came_astray
from tests.builders.canaries import TOPIC, CapturedAs, echo, frontier_watch, of_slice
from tests.builders.found import finding_at, suspect_at
from tests.builders.rows import FAMILY, MAILBOX, MESSAGE_ID, NOW, PROJECTION, SECOND, SLOT
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.lease import MemoryLease
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal, MemoryLineage
from tests.fakes.checkpoints.pauses import MemoryPauses
from tests.fakes.checkpoints.progress import MemoryBookmarks

HOUR: Micros = 3600 * SECOND
STREAM = "message"
HELD = Slot(MAILBOX, 99)
PIECE = Slice({("topic", 0): 10}, {("topic", 0): 20}, NOW, NOW)
LATER = Slice({("topic", 0): 20}, {("topic", 0): 30}, NOW + HOUR, NOW + HOUR)


class FlakyJournal(MemoryJournal):
    """Cannot be reached when a breaker is opened for the nth time, counted from 1."""

    def __init__(self, fails_at: int) -> None:
        super().__init__(lambda: NOW)
        self._fails_at = fails_at
        self._openings = 0

    def open_breaker(self, breaker: Breaker, reason: str, at: Micros) -> None:
        self._openings += 1
        if self._openings == self._fails_at:
            raise Unreachable("opening a breaker: no host answered")
        super().open_breaker(breaker, reason, at)


@dataclass
class MemoryPorts:
    """What a batch is decided over, in memory."""

    journal: MemoryJournal = field(default_factory=MemoryJournal)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    expiries: MemoryExpiries = field(default_factory=MemoryExpiries)
    pauses: MemoryPauses = field(default_factory=MemoryPauses)
    asked: float = 0.0
    seconds: float = 0.0

    def steady(self) -> float:
        """A clock that nobody sets; each asking takes two minutes, so nothing is paced."""
        self.seconds += 120.0
        return self.seconds


def batches(
    ports: MemoryPorts,
    bookmarks: MemoryBookmarks | None = None,
    frontier: FrontierWatch | None = None,
) -> Batches:
    """Decisions in repair mode, at `NOW`."""
    metrics = Metrics(CollectorRegistry())
    frontier = frontier or frontier_watch()
    limits = BreakerLimits(suspects_per_minute=5, removals_per_minute=5)
    position = StreamPosition(
        STREAM, bookmarks or MemoryBookmarks(), KafkaIds, lambda offsets: None
    )
    paced = HeldLooks(PROJECTION.name, limits, ports.steady)
    findings = OpenFindings(FAMILY, ports.journal, metrics, STREAM, HOUR, paced)
    return Batches(
        admission=AdmissionControl(
            family=FAMILY,
            breakers=BreakerWatch(ports.journal, limits, metrics),
            mode=Mode.REPAIR,
            lease=None,
            clock_trouble=lambda: None,
            metrics=metrics,
            pauses=PauseReport(PauseWatch(ports.pauses, lambda: NOW, lambda: ports.asked), metrics),
            findings=findings,
        ),
        ceiling=WriteCeiling(1_000),
        open_findings=findings,
        expired=ExpiredCells(ports.expiries),
        record=BatchRecord(FAMILY.name, position, frontier, metrics, lambda: NOW),
        memory=MemoryWatch(
            ports.lineage,
            MemoryLosses(),
            CapturedAs("imapuidtable=1@5"),
            lambda: NOW,
            MemoryReport(metrics),
        ),
        alone=CanariesAlone(lambda ranges: (), "james", "reconciler_canary", came_astray),
        behind=BehindWatch(frontier, SECOND, SECOND, lambda: NOW, metrics),
    )


def started(
    ports: MemoryPorts,
    bookmarks: MemoryBookmarks | None = None,
    frontier: FrontierWatch | None = None,
) -> Batches:
    """Decisions of a stream that has begun."""
    decisions = batches(ports, bookmarks, frontier)
    decisions.start()
    return decisions


# --- the lease ---------------------------------------------------------------------------------


def test_a_stream_whose_lease_was_taken_may_go_on_no_more() -> None:
    leases = MemoryLease()
    lease = Lease(leases, STREAM, Holder("ours", "host:1"))
    decisions = batches(MemoryPorts())
    decisions.admission.lease = lease
    lease.acquire()
    decisions.check_lease()
    lease.release()
    leases.take(STREAM, Holder("other", "host:2"), timedelta(seconds=60))
    with pytest.raises(AlreadyRunning):
        decisions.check_lease()


# --- a breaker is journalled before it counts ----------------------------------------------------


ONE_SUSPECT = BatchLook([suspect_at(HELD, Kind.EXTRA_ROW)], examined=9)
CANARIES = of_slice(echo(NOW, 0), echo(NOW + 1, NOW))


def held() -> Finding:
    return finding_at(HELD, state=State.HELD, waits=Waiting(Wait.BREAKER, "too many"))


def too_many(kind: Kind) -> BatchLook:
    suspects = [suspect_at(uid, kind, [MESSAGE_ID]) for uid in range(1, 11)]
    return BatchLook(suspects, examined=10)


def test_a_breaker_that_could_not_be_journalled_is_opened_by_the_batch_executed_again() -> None:
    ports = MemoryPorts(FlakyJournal(fails_at=1))
    decisions = started(ports)
    look = too_many(Kind.MISSING_ROW)
    with pytest.raises(Unreachable):
        decisions.admit(look, PIECE)
    decisions.recall()
    assert decisions.admit(look, PIECE).repairs_wait is not None
    assert set(ports.journal.breakers()) == {Breaker.REPAIRS}
    assert decisions.admit(BatchLook(examined=10), LATER).repairs_wait is not None


def test_nothing_is_resumed_by_a_breaker_that_could_not_be_journalled() -> None:
    ports = MemoryPorts(FlakyJournal(fails_at=1))
    ports.journal.put(held())
    decisions = batches(ports)
    assert [wake.key[1] for wake in decisions.start()] == [uid_of(HELD)]
    with pytest.raises(Unreachable):
        decisions.admit(too_many(Kind.MISSING_ROW), PIECE)
    assert decisions.later_looks(NOW) == []
    decisions.recall()
    decisions.admit(too_many(Kind.MISSING_ROW), PIECE)
    assert decisions.later_looks(NOW) == []


def test_a_breaker_of_late_records_needs_a_person_each_time() -> None:
    """When they were read is not known; an opening of that time may have been closed before."""
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    ports.journal.open_breaker(Breaker.REPAIRS, "once, after an outage", 0)
    ports.journal.close_breakers(NOW - HOUR)
    decisions = started(ports)
    late = replace(PIECE, read_at=0, done_before=0)
    assert decisions.admit(too_many(Kind.MISSING_ROW), late).repairs_wait is not None
    assert set(ports.journal.breakers()) == {Breaker.REPAIRS}
    assert not decisions.admission.breakers.was_resumed()


def test_of_two_breakers_the_second_is_journalled_too_by_the_batch_executed_again() -> None:
    ports = MemoryPorts(FlakyJournal(fails_at=2))
    decisions = started(ports)
    look = too_many(Kind.EXTRA_ROW)
    with pytest.raises(Unreachable):
        decisions.admit(look, PIECE)
    decisions.admit(look, PIECE)
    assert set(ports.journal.breakers()) == OF_ROWS


def test_what_was_held_is_looked_at_again_when_a_person_closes_the_breakers() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    ports.journal.put(held())
    decisions = started(ports)
    decisions.admit(too_many(Kind.MISSING_ROW), PIECE)
    assert decisions.later_looks(NOW) == []
    ports.journal.close_breakers(NOW)
    assert [wake.key[1] for wake in decisions.later_looks(NOW)] == [uid_of(HELD)]
    assert decisions.later_looks(NOW) == []


def test_what_waited_for_the_stream_to_catch_up_is_looked_at_when_it_has() -> None:
    ports, frontier = MemoryPorts(MemoryJournal(lambda: NOW)), frontier_watch(nodes=lambda: ("n1",))
    decisions = started(ports, frontier=frontier)
    piece = replace(PIECE, end={(TOPIC, 0): 20})
    admitted = decisions.admit(ONE_SUSPECT, piece)
    assert admitted.frontier is None
    why = admitted.memory_wait
    assert "no canary of node n1" in str(why)
    decisions.open_findings.index.keep(replace(held(), waits=why))
    elsewhere = replace(held(), slot=Slot(MAILBOX, 98), waits=ABOVE)
    decisions.open_findings.index.keep(elsewhere)
    assert decisions.later_looks(NOW) == []
    decisions.ended(BatchLook(echoes=CANARIES), piece)
    assert [wake.key[1] for wake in decisions.later_looks(NOW)] == [uid_of(HELD)]
    assert decisions.later_looks(NOW) == []
    admitted = decisions.admit(ONE_SUSPECT, piece)
    assert (admitted.memory_wait, admitted.frontier) == (
        None,
        frontier.until_with((), piece.end)["n1"],
    )


def test_the_canaries_of_a_slice_count_at_its_own_admission() -> None:
    """Else a stream whose windows are long is behind at each admission, and never at the end."""
    frontier = frontier_watch(nodes=lambda: ("n1",))
    decisions = started(MemoryPorts(), frontier=frontier)
    piece = replace(PIECE, end={(TOPIC, 0): 20})
    look = replace(ONE_SUSPECT, echoes=CANARIES)
    assert decisions.admit(look, piece).memory_wait is None
    assert frontier.reached() == {}, "it is not settled yet"
    assert decisions.admit(ONE_SUSPECT, piece).memory_wait is not None


def test_while_a_breaker_is_open_catching_up_lets_nothing_go() -> None:
    ports, frontier = MemoryPorts(MemoryJournal(lambda: NOW)), frontier_watch(nodes=lambda: ("n1",))
    decisions = started(ports, frontier=frontier)
    piece = replace(PIECE, end={(TOPIC, 0): 20})
    decisions.admit(too_many(Kind.MISSING_ROW), piece)
    waits = Waiting(Wait.BEHIND, "the stream is behind")
    decisions.open_findings.index.keep(replace(held(), waits=waits))
    decisions.ended(BatchLook(echoes=CANARIES), piece)
    assert decisions.later_looks(NOW) == []


def test_a_start_with_an_open_breaker_looks_at_nothing_that_is_held() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    ports.journal.put(held())
    ports.journal.open_breaker(Breaker.REMOVALS, "as it was", NOW)
    assert batches(ports).start() == []


@pytest.mark.parametrize(
    ("captured", "goes_on"),
    [
        ("imapuidtable=1@5", True),
        ("imapuidtable=2@5", False),
        ("imapuidtable=1@4", False),
        ("", False),
        (None, False),  # capture may not work yet: memory begins with the first frontier
    ],
)
def test_a_start_goes_on_with_the_memory_of_tables_that_are_captured_as_before(
    captured: str | None, goes_on: bool
) -> None:
    ports = MemoryPorts()
    if captured is not None:
        ports.lineage.watch_from(NOW - HOUR, captured)
    batches(ports).start()
    as_before = Watching(NOW - HOUR, captured="imapuidtable=1@5")
    assert ports.lineage.watching() == (as_before if goes_on else None)


def test_a_look_that_was_asked_for_is_not_asked_for_again_until_it_has_happened() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    ports.journal.put(replace(held(), state=State.REPORTED, next_look=NOW))
    decisions = started(ports)
    assert uids(decisions.later_looks(NOW)) == [uid_of(HELD)]
    assert decisions.later_looks(NOW + HOUR - 1) == []
    assert uids(decisions.later_looks(NOW + HOUR)) == [uid_of(HELD)]


# --- expired cells -------------------------------------------------------------------------------


def expected(*dues: Micros) -> MemoryPorts:
    """Connections that expect an expiry at each of these times, at UIDs 0, 1, 2 …"""
    ports = MemoryPorts()
    slots = (Slot(MAILBOX, uid) for uid in range(len(dues)))
    ports.expiries.expect(
        Expiry(slot, MESSAGE_ID, due) for slot, due in zip(slots, dues, strict=True)
    )
    return ports


def uids(wakes: list[Wake]) -> list[KeyValue | None]:
    return [wake.key[1] for wake in wakes]


def bookmarked(at: Micros) -> MemoryBookmarks:
    bookmarks = MemoryBookmarks(lambda: at)
    bookmarks.record(Bookmark(STREAM, {}))
    return bookmarks


def test_without_a_bookmark_all_expiries_that_are_kept_are_looked_at() -> None:
    kept: Micros = round(KEPT_AFTER_DUE.total_seconds()) * SECOND
    decisions = started(expected(NOW - kept - 1, NOW - kept + 1, NOW, NOW + 1))
    assert uids(decisions.later_looks(NOW)) == [1, 2]


def test_after_a_restart_expiries_since_an_hour_before_the_bookmark_are_looked_at() -> None:
    recorded = NOW - 24 * HOUR
    ports = expected(recorded - HOUR - 1, recorded - HOUR + 1, NOW)
    decisions = started(ports, bookmarked(recorded))
    assert uids(decisions.later_looks(NOW)) == [1, 2]


def test_a_bookmark_from_a_clock_that_ran_ahead_skips_nothing_that_is_due_now() -> None:
    decisions = started(expected(NOW - SECOND, NOW + SECOND), bookmarked(NOW + 23 * HOUR))
    assert uids(decisions.later_looks(NOW)) == [0]
    assert uids(decisions.later_looks(NOW + SECOND)) == [1]


def test_what_has_expired_is_looked_at_once() -> None:
    decisions = started(expected(NOW, NOW + SECOND))
    assert decisions.later_looks(NOW) == [scheduled_wake(Expiry(Slot(MAILBOX, 0), MESSAGE_ID, NOW))]
    assert decisions.later_looks(NOW) == []
    assert uids(decisions.later_looks(NOW + SECOND)) == [1]
    assert decisions.later_looks(NOW + HOUR) == []


def test_a_clock_that_steps_back_skips_no_expiry() -> None:
    ports = expected()
    decisions = started(ports)
    decisions.later_looks(NOW + 23 * HOUR)
    decisions.later_looks(NOW)
    ports.expiries.expect([Expiry(SLOT, None, NOW + SECOND)])
    assert uids(decisions.later_looks(NOW + SECOND)) == [uid_of(SLOT)]


# --- outcomes ------------------------------------------------------------------------------------


def counted(decisions: Batches, metric: str, **labels: str) -> float:
    return decisions.record.metrics.registry.get_sample_value(f"reconciler_{metric}", labels) or 0.0


def test_a_superseded_repair_is_counted_and_the_new_finding_kept() -> None:
    decisions = batches(MemoryPorts())
    before = replace(held(), state=State.INTENDED, kind=Kind.DIFFERING_CELLS)
    decisions.record_outcomes(
        Repaired([Outcome(HELD, Action.REPAIR, before, projection=PROJECTION.name)])
    )
    after = replace(before, sentence="anew")
    ended = Outcome(HELD, Action.CLOSE, before, ended=State.SUPERSEDED)
    decisions.record_outcomes(Repaired([ended, Outcome(HELD, Action.REPAIR, after)]))
    name = PROJECTION.name
    assert counted(decisions, "repairs_total", projection=name, outcome="superseded") == 1
    kept = decisions.open_findings.of(after)
    assert kept is not None
    assert (kept.kind, kept.state) == (Kind.DIFFERING_CELLS, State.INTENDED)
    intended = {"projection": name, "kind": "differing_cells", "state": "intended"}
    assert counted(decisions, "findings_total", **intended) == 2


@pytest.mark.parametrize("slot", [HELD, Slot(UUID(int=1), uid_of(HELD))])
def test_a_slot_that_agrees_without_a_finding_is_off_the_agenda(slot: Slot) -> None:
    decisions = batches(MemoryPorts())
    decisions.open_findings.index.keep(held())
    decisions.record_outcomes(
        Repaired([Outcome(slot, Action.NOTHING, None, projection=PROJECTION.name)])
    )
    assert (decisions.open_findings.of(held()) is None) is (slot == HELD)


# --- a table that refuses writes -----------------------------------------------------------------


def parked(**changes: Any) -> Finding:
    row, sentence = held(), "table t refuses writes"
    kind, state = Kind.TABLE_REFUSES, State.REPORTED
    whole = replace(row, slot=WHOLE_TABLE, kind=kind, state=state, sentence=sentence)
    return replace(whole, **changes)


@pytest.mark.parametrize("changes", [{}, {"state": State.HELD}, {"next_look": NOW}])
def test_the_finding_of_a_whole_table_is_never_published_as_a_key(changes: dict[str, Any]) -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    for finding in (held(), parked(**changes)):
        ports.journal.put(finding)
    decisions = batches(ports)
    assert uids(decisions.start()) == [uid_of(HELD)]
    assert decisions.later_looks(NOW + HOUR) == []
    ports.journal.open_breaker(Breaker.REPAIRS, "as it was", NOW)
    decisions.admission.breakers.recall()
    ports.journal.close_breakers(NOW)
    assert uids(decisions.later_looks(NOW + HOUR)) == [uid_of(HELD)]
    assert counted(decisions, "open_findings", **labels_of(parked(**changes))) == 1


def labels_of(finding: Finding) -> dict[str, str]:
    kind, state = finding.kind.value, finding.state.value
    return {"projection": finding.projection, "kind": kind, "state": state}


def test_that_a_table_refuses_is_told_once_whoever_found_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    decisions = batches(MemoryPorts())
    told = Outcome(WHOLE_TABLE, Action.REPORT, parked())
    waits = Outcome(HELD, Action.LOOK_AGAIN, None, projection=PROJECTION.name)
    with caplog.at_level("INFO"):
        for _batch in range(2):
            decisions.record_outcomes(Repaired([told, waits, told, waits]))
    assert [each.getMessage() for each in caplog.records] == ["table t refuses writes"]
    assert [each.slot for each in decisions.open_findings.index] == [WHOLE_TABLE]
    assert counted(decisions, "open_findings", **labels_of(parked())) == 1


@pytest.mark.parametrize("again", [False, True])
def test_what_a_lost_attempt_found_out_is_read_in_the_journal(again: bool) -> None:
    """The next attempt finds that the table is known to refuse, and says nothing of it."""
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    decisions = batches(ports)
    decisions.start()
    ports.journal.put(parked())
    waits = Outcome(HELD, Action.LOOK_AGAIN, None, projection=PROJECTION.name)
    decisions.record_outcomes(Repaired([waits], again))
    assert (PROJECTION.name in decisions.open_findings.refusing) is again


def test_that_a_table_takes_writes_again_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    decisions = batches(MemoryPorts())
    decisions.record_outcomes(Repaired([Outcome(WHOLE_TABLE, Action.REPORT, parked())]))
    caplog.clear()
    healed = Outcome(WHOLE_TABLE, Action.CLOSE, parked(), State.HEALED)
    with caplog.at_level("INFO"):
        decisions.record_outcomes(Repaired([healed, healed]))
    assert [each.getMessage() for each in caplog.records] == ["healed: table t refuses writes"]
    assert len(decisions.open_findings.index) == 0
    ended = labels_of(parked()) | {"state": State.HEALED.value}
    assert counted(decisions, "findings_total", **ended) == 1


def test_keys_that_are_looked_at_again_are_told_of_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    young = Outcome(HELD, Action.LOOK_AGAIN, None, projection=PROJECTION.name, reason="young")
    with caplog.at_level("INFO"):
        batches(MemoryPorts()).record_outcomes(Repaired([young, young]))
    told = [each.getMessage() for each in caplog.records]
    assert told == ["looking again at 2 keys one delay later: 2 young"]
