"""What is kept of all open findings answers as a model that recomputes it from the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconcilers.counters.open_message import OpenMessage, open_message
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.decision import OF_MANY_ROWS
from reconcilers.rows.finding import AND, Finding, State
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.open_messages import MOST
from streaming.pipeline import open_index
from streaming.pipeline.open_finding import OpenFinding
from streaming.pipeline.open_index import OpenIndex
from tests.builders.findings import acceptance
from tests.builders.found import finding_at
from tests.builders.rows import FAMILY, MAILBOX, NOW, OTHER_MAILBOX

GRANTING = replace(
    FAMILY,
    projections=(replace(FAMILY.listing, grants_access=True), *FAMILY.projections[1:]),
)
"""A row of its listing gives access, as one of the lists of rights does."""
HELD_OR_OBSERVED = frozenset({State.HELD, State.OBSERVED})
MESSAGES = tuple(UUID(f"22222222-0000-1000-8000-00000000000{number}") for number in range(3))
PLACES = (
    *(Slot(mailbox, uid) for mailbox in (MAILBOX, OTHER_MAILBOX) for uid in range(1, 4)),
    FAMILY.place_of_number(7),
    WHOLE_TABLE,
)
WAITS = tuple(Waiting(each, "a reason") for each in Wait)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    slot = draw(st.sampled_from(PLACES))
    state = draw(st.sampled_from(State))
    kinds = [Kind.SYSTEMATIC] if slot == FAMILY.place_of_number(7) else sorted(set(Kind) - SINGLE)
    return Finding(
        family=FAMILY.name,
        projection=draw(st.sampled_from(["messages", "unseen_uids"])),
        slot=slot,
        source=draw(st.sampled_from([None, str(MESSAGES[0]), AND.join(map(str, MESSAGES[1:]))])),
        kind=draw(st.sampled_from(kinds)),
        state=state,
        sentence="is missing",
        waits=draw(st.sampled_from(WAITS)) if state in HELD_OR_OBSERVED else None,
        found_at=draw(st.integers(NOW - 2, NOW)),
        oldest=draw(st.sampled_from([None, NOW])),
        attempts=draw(st.integers(0, 1)),
        next_look=draw(st.none() | st.integers(NOW, NOW + 9)),
        accepted=draw(st.sampled_from([frozenset(), acceptance(Kind.EXTRA_ROW)])),
    )


SINGLE = {*OF_MANY_ROWS}
PLACE = st.tuples(st.sampled_from(["messages", "unseen_uids"]), st.sampled_from(PLACES))
STEPS = st.lists(
    st.tuples(st.just("keep"), findings())
    | st.tuples(st.just("drop"), PLACE)
    | st.tuples(st.just("take"), st.integers(NOW - 1, NOW + 9))
    | st.tuples(st.just("fill"), st.just(None)),
    max_size=30,
)


class Model:
    """Recomputes each answer from whole findings. ``asked`` are those that were given as due."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, Slot], Finding] = {}
        self.asked: set[tuple[str, Slot]] = set()

    def keep(self, finding: Finding) -> None:
        self.at[finding.projection, finding.slot] = finding
        self.asked.discard((finding.projection, finding.slot))

    def drop(self, place: tuple[str, Slot]) -> None:
        self.at.pop(place, None)

    def due(self, now: Micros) -> set[tuple[str, Slot]]:
        return {
            place
            for place, each in self.at.items()
            if each.next_look is not None and each.next_look <= now and _is_of_a_row(each)
        } - self.asked

    def counts(self) -> Counter[tuple[str, str, str]]:
        found = self.at.values()
        return Counter((each.projection, each.kind.value, each.state.value) for each in found)

    def excess_since(self) -> Micros | None:
        extra = [each for each in self.at.values() if each.kind is Kind.EXTRA_ROW]
        return min((each.found_at for each in extra if each.projection == "messages"), default=None)

    def messages(self) -> Mapping[UUID, set[OpenMessage]]:
        found: dict[UUID, set[OpenMessage]] = {}
        for (name, slot), each in self.at.items():
            message = open_message(each) if name == "messages" and _is_of_a_row(each) else None
            if message is not None and isinstance(slot.group, UUID):
                found.setdefault(slot.group, set()).add(message)
        return found


def _is_of_a_row(finding: Finding) -> bool:
    return finding.slot != WHOLE_TABLE and finding.kind not in OF_MANY_ROWS


def same(index: OpenIndex, model: Model) -> None:
    assert index.counts == model.counts()
    assert all(index.counts.values())
    assert {(each.projection, each.slot) for each in index} == set(model.at)
    assert len(index) == len(model.at)
    assert index.excess_since() == model.excess_since()
    told = index.messages()
    assert {group: set(told[group]) for group in told} == model.messages()
    assert len(told) == len(model.messages())
    for kind in open_index.SINGLED_OUT:
        expected = {place for place, each in model.at.items() if each.kind is kind}
        assert {(each.projection, each.slot) for each in index.of_kind(kind)} == expected
    for place, finding in model.at.items():
        kept = index.at(*place)
        assert kept is not None
        is_as_the_finding(kept, finding)


def is_as_the_finding(kept: OpenFinding, finding: Finding) -> None:
    waits = finding.state in HELD_OR_OBSERVED
    above = finding.wait is Wait.CEILING
    assert (kept.kind, kept.state) == (finding.kind, finding.state)
    assert (kept.wait is not None) is waits
    assert kept.wait is finding.wait
    assert kept.is_paced is (waits and not above)
    assert kept.condition.unwritten is (
        waits and not above and not finding.attempts and not finding.accepted
    )
    assert tuple(map(str, kept.uuids)) == finding.sources
    assert kept.is_of_a_row is _is_of_a_row(finding)
    wake = kept.wake(MESSAGE)
    assert (wake.oldest, wake.projection) == (finding.oldest, finding.projection)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(STEPS)
def test_each_answer_is_that_of_a_model_which_recomputes_it(
    steps: list[tuple[str, object]],
) -> None:
    index, model = OpenIndex(GRANTING), Model()
    for what, told in steps:
        match what, told:
            case "keep", Finding() as finding:
                index.keep(finding)
                model.keep(finding)
            case "drop", (str() as name, Slot() as slot):
                index.drop(name, slot)
                model.drop((name, slot))
            case "take", int() as now:
                taken = [(each.projection, each.slot) for each in index.take_due(now)]
                assert len(taken) == len(set(taken))
                assert set(taken) == model.due(now)
                model.asked |= set(taken)
            case _:
                index = OpenIndex(GRANTING)
                index.fill(model.at.values())
                model.asked.clear()
        same(index, model)


# --- what a slice visits --------------------------------------------------------------------------

HELD = finding_at(1, Kind.EXTRA_ROW, State.HELD, source=str(MESSAGES[0]))
MANY = 5_000


class Visited(OpenIndex):
    """Counts the findings that are compared or looked up."""

    lookups: ClassVar[int] = 0

    def at(self, projection: str, slot: Slot) -> OpenFinding | None:
        Visited.lookups += 1
        return super().at(projection, slot)


@pytest.fixture
def waiting() -> Visited:
    index = Visited(GRANTING)
    index.fill(
        replace(HELD, slot=Slot(UUID(int=uid % 100), uid), next_look=NOW + uid)
        for uid in range(MANY)
    )
    index.messages()
    Visited.lookups = 0
    return index


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[OpenFinding]:
    compared: list[OpenFinding] = []
    before = OpenFinding.__lt__

    def counting(self: OpenFinding, other: OpenFinding) -> bool:
        compared.append(self)
        return before(self, other)

    monkeypatch.setattr(OpenFinding, "__lt__", counting)
    return compared


@pytest.fixture
def kinds_read(monkeypatch: pytest.MonkeyPatch) -> list[OpenFinding]:
    read: list[OpenFinding] = []

    def kind(self: OpenFinding) -> Kind:
        read.append(self)
        return self.condition.kind

    monkeypatch.setattr(OpenFinding, "kind", property(kind))
    return read


def test_a_slice_visits_those_that_are_due_and_no_others(
    waiting: Visited, comparisons: list[OpenFinding]
) -> None:
    assert [each.next_look for each in waiting.take_due(NOW + 2)] == [NOW, NOW + 1, NOW + 2]
    assert Visited.lookups == 3
    assert len(comparisons) < 3 * 2 * MANY.bit_length()


def test_a_slice_in_which_none_is_due_visits_none(
    waiting: Visited, comparisons: list[OpenFinding]
) -> None:
    before = waiting.messages()
    assert list(waiting.take_due(NOW - 1)) == []
    assert waiting.messages() is before
    assert list(waiting.of_kind(Kind.UNREADABLE)) == []
    assert (Visited.lookups, comparisons) == (0, [])


def test_the_oldest_right_that_should_be_gone_is_found_without_a_visit_to_the_others(
    waiting: Visited, kinds_read: list[OpenFinding]
) -> None:
    for uid in range(1, 4):
        waiting.keep(replace(HELD, slot=Slot(UUID(int=uid), uid), found_at=NOW - uid))
    waiting.drop("messages", Slot(UUID(int=3), 3))
    Visited.lookups = 0
    kinds_read.clear()
    assert [waiting.excess_since(), waiting.excess_since()] == [NOW - 2, NOW - 2]
    assert (Visited.lookups, kinds_read) == (3, [])


def test_a_change_copies_one_part_of_the_mailboxes(waiting: Visited) -> None:
    before = waiting.messages()
    waiting.keep(replace(HELD, slot=Slot(UUID(int=7), MANY)))
    after = waiting.messages()
    changed = [was is not now for was, now in zip(before.parts, after.parts, strict=True)]
    assert changed.count(True) == 1
    assert len(after[UUID(int=7)]) == len(before[UUID(int=7)]) + 1


def test_what_was_told_before_stays_as_it_was(waiting: Visited) -> None:
    before = waiting.messages()
    told = before[UUID(int=7)]
    for uid in range(7, MANY, 100):
        waiting.drop("messages", Slot(UUID(int=7), uid))
    assert before[UUID(int=7)] == told
    assert UUID(int=7) not in waiting.messages()


def test_of_a_mailbox_whose_counters_wait_no_more_is_told_than_that(waiting: Visited) -> None:
    for uid in range(2 * MOST):
        waiting.keep(replace(HELD, slot=Slot(MAILBOX, uid)))
    assert len(waiting.messages()[MAILBOX]) == MOST + 1


def test_what_both_tables_have_alike_hides_no_open_message(waiting: Visited) -> None:
    """However many of them a mailbox has, the messages that its counters ask for are told."""
    for uid in range(2 * MOST):
        found = replace(HELD, slot=Slot(MAILBOX, uid), kind=Kind.INCOMPLETE_IN_BOTH)
        waiting.keep(replace(found, state=State.REPORTED))
    assert MAILBOX not in waiting.messages()
    waiting.keep(replace(HELD, slot=Slot(MAILBOX, 2 * MOST)))
    assert [each.uid for each in waiting.messages()[MAILBOX]] == [2 * MOST]


def test_more_than_a_page_is_due_with_the_next_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_index, "AT_ONCE", 100)
    index = OpenIndex(FAMILY)
    for uid in range(250):
        index.keep(replace(HELD, slot=Slot(MAILBOX, uid), next_look=NOW))
    assert [len(list(index.take_due(NOW))) for _ in range(4)] == [100, 100, 50, 0]


def test_what_is_looked_at_again_and_again_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_index, "SLACK", 10)
    index = OpenIndex(GRANTING)
    for number in range(1_000):
        index.keep(replace(HELD, next_look=NOW + number))
    assert max(len(index._due), len(index._excess)) <= 12
    assert len(list(index.take_due(NOW + 1_000))) == 1


def test_the_id_of_a_mailbox_and_a_condition_are_kept_once() -> None:
    index = OpenIndex(FAMILY)
    for uid in (1, 2):
        index.keep(replace(HELD, slot=Slot(UUID(str(MAILBOX)), uid)))
    first, second = index
    assert first.slot.group is second.slot.group
    assert first.condition is second.condition


def test_families_without_uuids_are_kept_as_well() -> None:
    index = OpenIndex(FAMILY)
    index.keep(replace(HELD, slot=Slot("ana", 1), source="no uuid"))
    (only,) = index
    assert only.uuids == ()
    assert len(index.messages()) == 0
