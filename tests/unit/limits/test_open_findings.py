"""Open findings in the driver's memory: what is due, what waits, how many of which kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.clock import now_micros
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.sweep.lost_rows import LostRows, together
from reconcilers.sweep.systematic import IN_A_COLUMN, Extent, Pattern, systematic
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Slot, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_finding import opened
from streaming.pipeline.open_findings import OpenFindings
from streaming.steps.outcome import Outcome
from tests.builders.found import finding_at
from tests.builders.rights import BOB, EVE, FROM_EVENTS, place
from tests.builders.rows import DELAY, FAMILY, LONG_AGO, MAILBOX, NOW, OTHER_MAILBOX, SECOND, SLOT
from tests.fakes.checkpoints.memory import MemoryJournal

FOUND = finding_at(SLOT, found_at=LONG_AGO, oldest=LONG_AGO)
ELSEWHERE = replace(FOUND, slot=Slot(MAILBOX, 8), kind=Kind.EXTRA_ROW, state=State.HELD)
ELSEWHERE = replace(ELSEWHERE, waits=Waiting(Wait.BREAKER, "too many"))
OF_AN_INDEX = replace(FOUND, projection="unseen_uids")
OF_A_TABLE = replace(FOUND, slot=WHOLE_TABLE, kind=Kind.TABLE_REFUSES, state=State.HELD)

OF_MANY_ROWS = replace(
    FOUND, slot=FAMILY.place_of_number(7), kind=Kind.SYSTEMATIC, state=State.HELD
)


def open_findings(journal: MemoryJournal) -> OpenFindings:
    metrics = Metrics(CollectorRegistry())
    at_once = HeldLooks("messages", None)
    return OpenFindings(FAMILY, journal, metrics, "message", DELAY, at_once)


def keeping(*findings: Finding) -> OpenFindings:
    kept = open_findings(MemoryJournal(lambda: NOW))
    for finding in findings:
        kept.index.keep(finding)
    return kept


def test_what_is_known_to_be_unreadable_is_so_until_its_finding_is_closed() -> None:
    unreadable = replace(ELSEWHERE, kind=Kind.UNREADABLE, state=State.REPORTED)
    kept = keeping(FOUND, unreadable)
    assert kept.unreadable() == {unreadable.slot}
    kept.index.drop(unreadable.projection, unreadable.slot)
    assert kept.unreadable() == frozenset()


def test_what_is_closed_is_dropped_and_only_that() -> None:
    kept = keeping(FOUND, OF_AN_INDEX)
    kept.index.drop(FOUND.projection, FOUND.slot)
    kept.index.drop(FOUND.projection, FOUND.slot)
    assert [each.projection for each in kept.index] == ["unseen_uids"]
    kept.index.drop("unseen_uids", SLOT)
    kept.index.drop("unseen_uids", SLOT)
    assert kept.of(OF_AN_INDEX) is None


@pytest.mark.parametrize("found", [OF_A_TABLE, OF_MANY_ROWS], ids=["a table", "many rows"])
def test_what_stands_for_a_table_or_for_many_rows_has_no_key_to_look_at(found: Finding) -> None:
    kept = keeping(replace(found, next_look=NOW))
    assert kept.take_due(NOW) == []
    assert list(kept.held()) == []
    assert kept.messages() == {}


@pytest.mark.parametrize("state", list(State))
def test_only_what_waits_for_a_decision_is_held(state: State) -> None:
    waits = Waiting(Wait.CLOCKS, "") if state in (State.HELD, State.OBSERVED) else None
    held = list(keeping(replace(FOUND, state=state, waits=waits)).held())
    assert bool(held) is (waits is not None)


def test_its_key_is_looked_at_again_for_its_own_projection() -> None:
    assert opened(OF_AN_INDEX).wake(MESSAGE) == Wake(
        (MAILBOX, 7), None, oldest=LONG_AGO, looked_again=True, projection="unseen_uids"
    )


def test_what_is_due_is_not_due_again_until_the_look_must_have_happened() -> None:
    kept = keeping(replace(FOUND, next_look=NOW), replace(ELSEWHERE, next_look=NOW + 1))
    assert [each.slot for each in kept.take_due(NOW)] == [SLOT]
    assert [each.slot for each in kept.take_due(NOW + DELAY - 1)] == [Slot(MAILBOX, 8)]
    assert [each.slot for each in kept.take_due(NOW + DELAY)] == [SLOT]


def test_what_the_journal_holds_is_read_anew() -> None:
    journal = MemoryJournal(lambda: NOW)
    journal.put(FOUND)
    kept = open_findings(journal)
    kept.index.keep(ELSEWHERE)
    kept.recall()
    assert [(each.slot, each.kind) for each in kept.index] == [(SLOT, Kind.MISSING_ROW)]


def test_a_mailbox_has_a_finding_where_the_list_of_messages_differs() -> None:
    other = replace(OF_AN_INDEX, slot=Slot(OTHER_MAILBOX, 7))
    found = keeping(FOUND, ELSEWHERE, other).messages()
    assert {box: [each.uid for each in some] for box, some in found.items()} == {MAILBOX: [7, 8]}
    assert keeping(other).messages() == {}
    assert list(keeping(FOUND, OF_A_TABLE).messages()) == [MAILBOX]


def test_what_a_sweep_tells_of_many_rows_is_shown_within_a_minute_and_its_end_too() -> None:
    journal = MemoryJournal(lambda: NOW)
    kept = open_findings(journal)
    found = together(FAMILY, LostRows(Kind.ABSENT_WITHOUT_DELETE, 5_000, 9), NOW)
    kept.recall_told(NOW)
    journal.put(found)
    journal.accept(accepted(found, NOW))
    kept.recall_told(NOW + 59 * SECOND)
    assert kept.index.counts == {}
    kept.recall_told(NOW + 60 * SECOND)
    assert kept.index.counts == {("messages", "truth_lost_rows", "reported"): 1}
    assert kept.take_due(NOW + 3600 * SECOND) == []
    assert len(kept.messages()) == 0
    journal.close(found, State.HEALED, NOW)
    kept.recall_told(NOW + 120 * SECOND)
    assert kept.index.counts == {}


def shown(kept: OpenFindings) -> dict[str, float]:
    """The open findings by kind, as Prometheus sees them."""
    (family,) = kept.metrics.open_findings.collect()
    return {sample.labels["kind"]: sample.value for sample in family.samples}


@pytest.mark.parametrize("kind", sorted(IN_A_COLUMN))
def test_a_systematic_difference_that_a_sweep_reports_is_shown_before_any_start(kind: Kind) -> None:
    journal = MemoryJournal(lambda: NOW)
    kept = open_findings(journal)
    for column in FAMILY.listing.columns[:2]:
        pattern = Pattern("messages", kind, column)
        journal.put(systematic(FAMILY, Extent(pattern, 1_200, 3_000), NOW))
    kept.recall_told(NOW)
    assert shown(kept) == {"systematic": 2}
    for finding in journal.open_findings(FAMILY):
        journal.close(finding, State.HEALED, NOW)
    kept.recall_told(NOW + 60 * SECOND)
    assert shown(kept) == {}


def test_a_new_reason_is_logged_and_counts_as_no_new_finding(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = keeping()
    with caplog.at_level("INFO"):
        for wait in (Wait.BREAKER, Wait.BREAKER, Wait.CEILING):
            held = replace(ELSEWHERE, waits=Waiting(wait, "a reason"))
            kept.record_outcomes([Outcome(ELSEWHERE.slot, Action.KEEP, held)])
    assert len(caplog.records) == 2
    labels = ("projection", "kind", "state")
    counted = {each: str(getattr(ELSEWHERE, each)) for each in labels}
    assert kept.metrics.registry.get_sample_value("reconciler_findings_total", counted) == 1


def test_the_age_of_a_right_that_should_be_gone_counts_from_when_it_was_found() -> None:
    metrics = Metrics(CollectorRegistry())
    family, journal = FROM_EVENTS, MemoryJournal(lambda: NOW)
    kept = OpenFindings(
        family, journal, metrics, "rights", DELAY, HeldLooks(family.listing.name, None)
    )
    found = now_micros() - 600 * SECOND
    extra = finding_at(place(BOB), Kind.EXTRA_ROW, State.HELD, found_at=found)
    extra = replace(extra, family=family.name, projection=family.listing.name)
    others = [replace(extra, slot=place(EVE), found_at=found + SECOND)]
    others += [replace(extra, slot=place("ana"), found_at=0, kind=Kind.MISSING_ROW)]
    for each in (extra, *others):
        journal.put(each)
    age = partial(metrics.registry.get_sample_value, "reconciler_stale_right_age_seconds")
    assert age() == 0
    kept.recall()
    assert age() == pytest.approx(600, abs=60)
    for each in (extra, others[0]):
        kept.record_outcomes(
            [Outcome(each.slot, Action.CLOSE, each, State.VERIFIED, projection=each.projection)]
        )
    assert age() == 0
