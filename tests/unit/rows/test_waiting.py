"""Why findings wait: by values alone, whatever people have typed."""

import ast
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.codec import finding_to_json, log_line
from checkpoints.pauses import Resumed
from reconcilers.limits.gate import Admission
from reconcilers.limits.hold import Hold
from reconcilers.limits.pause import PILOT, Pause, in_doubt
from reconcilers.limits.pilot import Pilot
from reconcilers.limits.write_target import ALL
from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.rows.finding import State
from reconcilers.words.model import Kind
from reconcilers.words.waiting import RULES, Ends, Wait, Waiting
from streaming.commands.person.decisions import ACCEPT
from streaming.commands.person.finding_formats import as_table, listed
from streaming.commands.person.orders import Orders
from tests.builders.examining import Stream, stream
from tests.builders.findings import waiting
from tests.builders.rows import FAMILY, NOW, SLOT, truth
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.unit.stream.test_batches import MemoryPorts, batches

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("reconcilers", "checkpoints", "streaming")
PHRASES = (
    "; held: on hold by legal until Monday",
    ": on hold by ana: hers; `reconcile findings --release` ends it",
    "; held: paused by ana: a look",
    ": outside the pilot of carol: a try",
    "; held: the stream is behind: no canary",
    "; held: this minute has had its repairs (repair.writes_per_minute)",
    "held: its table takes others, not this: too large",
    "breaker repairs: too many",
)
TYPED = st.lists(st.one_of(st.sampled_from(PHRASES), st.text(max_size=20)), max_size=4).map("".join)
SOURCES = {
    Wait.HOLD: lambda text: Hold(FAMILY.name, "messages", SLOT, NOW, text, text).waiting,
    Wait.PAUSE: lambda text: Pause(ALL, NOW, text, text).waiting,
    Wait.PILOT: lambda text: Pause(PILOT, NOW, text, text, pilot=Pilot(frozenset({text}))).waiting,
    Wait.OWN_KEYSPACE: lambda text: in_doubt(text).waiting,
}


def held(waits: Waiting) -> Stream:
    """A message that the listing lacks, and that this holds back."""
    made = stream(wanted=truth())
    made.settle(Kind.MISSING_ROW, Admission(repairs_wait=waits))
    return made


# --- what people type ----------------------------------------------------------------------------


@pytest.mark.parametrize("wait", SOURCES)
@given(text=TYPED)
def test_no_typed_text_changes_what_a_finding_waits_for(wait: Wait, text: str) -> None:
    finding = held(SOURCES[wait](text)).open_finding
    assert (finding.state, finding.wait) == (State.HELD, wait)
    assert (finding.next_look is not None) is RULES[wait].is_looked_at
    assert ACCEPT.refusal(finding) == str(RULES[wait])


@given(text=TYPED)
def test_what_a_pause_holds_comes_back_when_it_ends_whatever_its_reason(text: str) -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    pause = Pause(ALL, NOW, text, text)
    ports.pauses.begin(pause)
    ports.journal.put(waiting(waits=pause.waiting))
    decisions = batches(ports)
    decisions.start()
    decisions.later_looks(NOW)
    ports.pauses.end(pause, Resumed(NOW, text, text))
    ports.asked += 2
    assert [wake.slot for wake in decisions.later_looks(NOW)] == [SLOT]


@given(who=TYPED, reason=TYPED, cell=TYPED)
def test_nor_does_the_reason_of_a_decision_or_a_cell_of_a_row(
    who: str, reason: str, cell: str
) -> None:
    told = Orders(who, reason).told(f"flag {cell} differs", "retried")
    finding = waiting(waits=Waiting(Wait.BREAKER, "too many"), sentence=told)
    assert ACCEPT.refusal(finding) == str(RULES[Wait.BREAKER])


# --- every wait ----------------------------------------------------------------------------------


def test_each_wait_has_a_rule() -> None:
    assert list(RULES) == list(Wait)
    assert all(rule.command for rule in RULES.values() if rule.ends is not Ends.STREAM)


@pytest.mark.parametrize("wait", Wait)
def test_a_refused_accept_names_the_way_out(wait: Wait) -> None:
    refusal = ACCEPT.refusal(waiting(waits=Waiting(wait, "a reason")))
    assert refusal == (None if RULES[wait].may_be_accepted else str(RULES[wait]))
    if refusal is not None:
        assert RULES[wait].command in refusal


@pytest.mark.parametrize("wait", Wait)
def test_what_a_person_decides_on_may_be_accepted_unless_it_is_on_hold(wait: Wait) -> None:
    for kind in ACCEPTABLE - {Kind.PAST_ROWS}:
        finding = waiting(waits=Waiting(wait, "a reason"), kind=kind)
        assert (ACCEPT.refusal(finding) is None) is (wait is not Wait.HOLD)


def test_the_runbook_has_the_rules() -> None:
    rows = [
        f"| `{wait}` | {rule.means} | {rule.ends}{f': `{rule.command}`' if rule.command else ''} |"
        for wait, rule in RULES.items()
    ]
    page = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
    assert "\n".join(rows) in page, "\n".join(rows)


@pytest.mark.parametrize("state", State)
def test_only_what_is_held_or_observed_waits(state: State) -> None:
    finding = replace(waiting(waits=Waiting(Wait.CLOCKS, "clocks differ")), state=state)
    held = {State.HELD: "; held: clocks differ", State.OBSERVED: "; would be held: clocks differ"}
    assert finding.told == f"is missing{held.get(state, '')}"
    assert (finding.wait is None) is (state not in held)


@pytest.mark.parametrize("state", State)
def test_a_list_names_a_wait_only_of_what_waits(state: State) -> None:
    finding = replace(waiting(waits=Waiting(Wait.ROW, "too large")), state=state)
    told = finding_to_json(finding, FAMILY)
    waits = finding.wait is not None
    assert ("too large" in "".join(as_table([told]))) is waits
    assert (",row," in list(listed("csv", [told]))[1]) is waits
    assert (
        bool(log_line(waiting(waits=Waiting(Wait.ROW, "")), FAMILY, state, NOW)["waits"]) is waits
    )


# --- the log -------------------------------------------------------------------------------------


def lines_after(first: Waiting, then: Waiting) -> list[str]:
    one = held(first)
    before = len(one.logged())
    one.settle(Kind.MISSING_ROW, Admission(repairs_wait=then))
    return [str(each) for each in one.logged()[before:]]


def test_a_reason_that_changes_leaves_one_line_and_a_number_none() -> None:
    breaker, pause = Waiting(Wait.BREAKER, "51 in a minute"), Waiting(Wait.PAUSE, "a look")
    assert lines_after(breaker, pause) == ["held"]
    assert lines_after(breaker, Waiting(Wait.BREAKER, "52 in a minute")) == []
    assert lines_after(breaker, breaker) == []


# --- where waits are made ------------------------------------------------------------------------

PLACES = {
    "reconcilers/limits/behind.py": {Wait.BEHIND},
    "reconcilers/rows/decision.py": {Wait.LOOK},
    "reconcilers/counters/drift.py": {Wait.LISTING_INCOMPLETE},
    "reconcilers/words/errors.py": {Wait.CHANGES},
    "reconcilers/limits/hold.py": {Wait.HOLD},
    "reconcilers/limits/pause.py": {Wait.OWN_KEYSPACE, Wait.PAUSE, Wait.PILOT},
    "reconcilers/rows/refusal.py": {Wait.COMMAND, Wait.OBSERVING},
    "reconcilers/sweep/systematic.py": {Wait.DECISION},
    "streaming/commands/wiring/trouble.py": {Wait.LEASE},
    "streaming/counters/correct.py": {Wait.DECISION},
    "streaming/counters/correction_breaker.py": {Wait.CEILING},
    "streaming/counters/count.py": {Wait.MESSAGES_DIFFER},
    "streaming/counters/counter_row.py": {Wait.OWNER},
    "streaming/counters/live_table.py": {Wait.OTHER_TABLE},
    "streaming/counters/open_messages.py": {Wait.MESSAGES_DIFFER},
    "streaming/monitoring/clocks.py": {Wait.CLOCKS},
    "streaming/monitoring/nodes.py": {Wait.NODE_AWAY},
    "streaming/pipeline/admission.py": {Wait.FAST_WRITERS},
    "streaming/pipeline/breakers.py": {Wait.BREAKER},
    "streaming/steps/parking.py": {Wait.TABLE},
    "streaming/steps/pauses.py": {Wait.PAUSES_UNKNOWN},
    "streaming/steps/permit.py": {Wait.CEILING},
    "streaming/steps/repair.py": {Wait.ROW},
}
"""Every place of the product that makes a finding wait."""


def calls() -> list[tuple[str, ast.Call]]:
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def test_every_place_that_makes_a_finding_wait_is_listed() -> None:
    found: defaultdict[str, set[Wait]] = defaultdict(set)
    for path, call in calls():
        if isinstance(call.func, ast.Name) and call.func.id == "Waiting":
            names = {
                inner.attr
                for argument in call.args[:1]
                for inner in ast.walk(argument)
                if isinstance(inner, ast.Attribute) and inner.attr in Wait.__members__
            }
            if path != "checkpoints/codec.py":  # which reads one back
                assert names, f"{path}:{call.lineno}"
            found[path] |= {Wait[each] for each in names}
    found.pop("checkpoints/codec.py")
    assert found == PLACES
    assert set().union(*PLACES.values()) == set(Wait)


def test_what_is_held_or_observed_says_what_it_waits_for() -> None:
    for path, call in calls():
        given = {each.arg: ast.unparse(each.value) for each in call.keywords}
        if given.get("state") in {"State.HELD", "State.OBSERVED"}:
            assert "waits" in given, f"{path}:{call.lineno}"
