"""The journal's contract: the same for the fake and for Cassandra."""

import json
import uuid
from dataclasses import replace

import pytest

from checkpoints.cassandra import CassandraJournal, Store
from checkpoints.cassandra.buckets import bucket_of
from checkpoints.clock import now_micros
from checkpoints.journal import Journal
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.acceptance import Accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import Wait, Waiting
from tests.builders.findings import acceptance
from tests.builders.slots import mailbox_of
from tests.contract.making import DAY, SetClock, a_family, a_finding, a_slot, days_of_its_own
from tests.fakes.checkpoints.memory import MemoryJournal

AHEAD = 20_000_000
"""µs by which the clocks of two hosts differ."""


@pytest.fixture
def clock() -> SetClock:
    """At a day of which the log is this test's alone."""
    return SetClock(days_of_its_own() + 1_000_000)


@pytest.fixture
def journal(
    kind: str, clock: SetClock, family: Family, other: Family, request: pytest.FixtureRequest
) -> Journal:
    families = (family, other)
    if kind == "memory":
        return MemoryJournal(clock, families)
    store = request.getfixturevalue("store")
    scope = uuid.uuid4().hex
    return CassandraJournal(store, scope=scope, clock=clock, families=families)


@pytest.fixture
def other() -> Family:
    """Another one that the journal knows."""
    return a_family()


@pytest.mark.parametrize("wait", [None, *Wait])
def test_what_a_finding_waits_for_is_kept(
    journal: Journal, family: Family, wait: Wait | None
) -> None:
    waits = None if wait is None else Waiting(wait, "a reason; held: on hold by 'ü'")
    finding = a_finding(family, a_slot(), waits=waits)
    journal.put(finding)
    assert journal.recall(family, finding.projection, [finding.slot]) == {finding.slot: finding}


def test_a_finding_is_recalled_with_every_field(journal: Journal, family: Family) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    assert journal.recall(family, "messages", [finding.slot]) == {finding.slot: finding}


def test_a_finding_without_optional_fields(journal: Journal, family: Family) -> None:
    empty = {"source": None, "oldest": None, "before": None, "writes": (), "truth": ()}
    finding = a_finding(family, a_slot(), **empty, next_look=None, accepted=frozenset(), batch="")
    journal.put(finding)
    assert list(journal.open_findings(family)) == [finding]


def test_recall_is_by_slot_projection_and_family(
    journal: Journal, family: Family, other: Family
) -> None:
    slot = a_slot()
    journal.put(a_finding(family, slot))
    assert journal.recall(family, "messages", []) == {}
    assert journal.recall(family, "messages", [Slot(mailbox_of(slot), 8), a_slot()]) == {}
    assert journal.recall(family, "another", [slot]) == {}
    assert journal.recall(other, "messages", [slot]) == {}


def test_recall_of_many_slots_at_once(journal: Journal, family: Family) -> None:
    mailbox, other = uuid.uuid1(), uuid.uuid4()
    slots = [Slot(mailbox, uid) for uid in range(1500)] + [Slot(other, uid) for uid in range(300)]
    open_ones = {slot: a_finding(family, slot) for slot in slots[::40]}
    for finding in open_ones.values():
        journal.put(finding)
    assert journal.recall(family, "messages", slots + slots) == open_ones


def test_put_replaces_the_whole_finding_at_its_slot(journal: Journal, family: Family) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    stripped = replace(
        finding, state=State.HELD, writes=(), before=None, next_look=None, source=None, truth=()
    )
    journal.put(stripped)
    assert journal.recall(family, "messages", [finding.slot]) == {finding.slot: stripped}
    assert list(journal.open_findings(family)) == [stripped]


def test_put_logs_each_state_and_touch_does_not(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    journal.touch(replace(finding, next_look=99))
    clock.now += 1
    journal.put(replace(finding, state=State.STUCK))
    assert [line["state"] for line in journal.log(clock.day)] == ["intended", "stuck"]
    assert [line["next_look"] for line in journal.log(clock.day)] == [finding.next_look] * 2


def test_touch_replaces_the_open_finding(journal: Journal, family: Family) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    journal.touch(replace(finding, next_look=99))
    assert journal.recall(family, "messages", [finding.slot])[finding.slot].next_look == 99


def test_close_logs_the_end_and_removes(journal: Journal, family: Family, clock: SetClock) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    journal.close(finding, State.VERIFIED, clock.now + 5)
    assert journal.recall(family, "messages", [finding.slot]) == {}
    assert list(journal.open_findings(family)) == []
    opened, ended = journal.log(clock.day)
    assert (opened["state"], opened["at"]) == ("intended", clock.now)
    assert (ended["state"], ended["at"]) == ("verified", clock.now + 5)
    assert ended["before"] == opened["before"]
    undo = json.loads(json.dumps(ended))
    assert undo["before"]["cells"]["userflags"] == {"set": ["a", "ü b"]}
    assert [write["write"] for write in undo["writes"]] == [
        "set_cells", "add_to_set", "remove_from_set", "delete_row",
    ]  # fmt: skip


def test_closing_again_after_a_crash_only_logs_again(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    finding = a_finding(family, a_slot())
    journal.close(finding, State.HEALED, clock.now)
    journal.close(finding, State.HEALED, clock.now)
    assert list(journal.open_findings(family)) == []
    assert [line["state"] for line in journal.log(clock.day)] == ["healed", "healed"]


def test_a_closed_finding_can_be_opened_again(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    finding = a_finding(family, a_slot())
    journal.put(finding)
    journal.close(finding, State.SUPERSEDED, clock.now)
    again = replace(finding, kind=Kind.EXTRA_ROW, attempts=0)
    journal.put(again)
    assert journal.recall(family, "messages", [finding.slot]) == {finding.slot: again}


def test_all_open_findings_of_a_family_are_listed(
    journal: Journal, family: Family, other: Family
) -> None:
    findings = [a_finding(family, a_slot(uid)) for uid in range(60)]
    for finding in findings:
        journal.put(finding)
    journal.put(a_finding(other, a_slot()))
    listed = list(journal.open_findings(family))
    assert len(listed) == 60
    assert {finding.slot: finding for finding in listed} == {each.slot: each for each in findings}


def test_the_log_is_oldest_first_whatever_the_order_of_writing(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    start = clock.now
    for minute in (5, 1, 4, 2, 3):
        clock.now = start + minute * 60_000_000
        journal.put(a_finding(family, a_slot(), attempts=minute))
    assert [line["attempts"] for line in journal.log(clock.day)] == [1, 2, 3, 4, 5]


def test_the_log_is_by_utc_day(journal: Journal, family: Family, clock: SetClock) -> None:
    clock.now = clock.now // DAY * DAY
    today = clock.day
    journal.put(a_finding(family, a_slot(), attempts=0))
    clock.now += DAY - 1
    journal.put(a_finding(family, a_slot(), attempts=1))
    clock.now += 1
    journal.put(a_finding(family, a_slot(), attempts=2))
    assert [line["attempts"] for line in journal.log(today)] == [0, 1]
    assert [line["attempts"] for line in journal.log(clock.day)] == [2]


def test_a_slots_history_is_newest_first_over_days_and_of_it_alone(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    finding = a_finding(family, a_slot(), projection="messages")
    ends = [State.INTENDED, State.VERIFIED, State.UNDONE]
    for end in ends:
        journal.close(finding, end, clock.now)
        clock.now += 3 * DAY
    journal.close(replace(finding, slot=a_slot()), State.HEALED, clock.now)
    journal.close(replace(finding, projection="deleted_uids"), State.HEALED, clock.now)
    told = list(journal.history(family, "messages", finding.slot))
    assert told == [replace(finding, state=end) for end in reversed(ends)]
    assert list(journal.history(family, "unseen_uids", finding.slot)) == []
    since = list(journal.history(family, "messages", finding.slot, clock.now - 5 * DAY))
    assert since == told[:2]


def test_a_line_of_a_host_whose_clock_is_ahead_is_part_of_the_history(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    finding = a_finding(family, a_slot())
    journal.close(finding, State.VERIFIED, clock.now + DAY // 2)
    assert len(list(journal.history(family, finding.projection, finding.slot))) == 1


def test_breakers_stay_open_until_closed(journal: Journal) -> None:
    assert journal.breakers() == {}
    journal.open_breaker(Breaker.REMOVALS, "101 in a minute", 10)
    journal.open_breaker(Breaker.REPAIRS, "2000 in a minute", 11)
    journal.open_breaker(Breaker.REMOVALS, "again", 12)
    assert journal.breakers() == {
        Breaker.REMOVALS: "101 in a minute",
        Breaker.REPAIRS: "2000 in a minute",
    }
    journal.close_breakers(20)
    assert journal.breakers() == {}


def test_openings_are_closed_one_by_one(journal: Journal) -> None:
    for breaker, at in ((Breaker.REMOVALS, 10), (Breaker.REPAIRS, 11), (Breaker.REMOVALS, 12)):
        journal.open_breaker(breaker, f"opened at {at}", at)
    first, second, repairs = journal.openings()
    assert (first.at, second.at, repairs.breaker) == (10, 12, Breaker.REPAIRS)
    journal.close_breakers(20, [first, repairs])
    assert journal.openings() == [second]
    assert journal.breakers() == {Breaker.REMOVALS: "opened at 12"}
    assert journal.all_openings() == [(first, 20), (second, None), (repairs, 20)]


def test_a_breaker_opens_again_whatever_the_clocks_say(journal: Journal) -> None:
    journal.open_breaker(Breaker.REPAIRS, "first", 1_000)
    journal.close_breakers(500)
    assert journal.breakers() == {}
    journal.open_breaker(Breaker.REPAIRS, "second", 400)
    assert journal.breakers() == {Breaker.REPAIRS: "second"}


def test_a_batch_that_runs_again_does_not_undo_a_persons_decision(journal: Journal) -> None:
    journal.open_breaker(Breaker.REPAIRS, "too many", 1_000)
    journal.close_breakers(2_000)
    journal.open_breaker(Breaker.REPAIRS, "too many", 1_000)
    assert journal.breakers() == {}


# --- what a person decides ----------------------------------------------------------------------


def test_a_decision_replaces_what_stands_and_is_logged(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    slot = a_slot()
    held = a_finding(family, slot, state=State.HELD, accepted=frozenset())
    journal.put(held)
    decided = replace(held, sentence="is tried again")
    journal.decide(decided)
    assert journal.recall(family, held.projection, [slot]) == {slot: decided}
    assert len([line for line in journal.log(clock.day) if line["uid"] == slot.key[1]]) == 2


def test_a_decision_is_kept_whatever_the_clock_of_the_persons_host(
    journal: Journal, family: Family, kind: str, request: pytest.FixtureRequest
) -> None:
    """The stream's clock is ahead of it: by its own time the decision would be lost."""
    slot = a_slot()
    held = a_finding(family, slot, state=State.HELD, accepted=frozenset())
    journal.put(held)
    if kind != "memory":
        hold_in_the_future(request.getfixturevalue("store"), held)
    decided = replace(held, sentence="is tried again")
    journal.decide(decided)
    assert journal.recall(family, held.projection, [slot])[slot] == decided


def test_what_is_accepted_outlives_a_look_that_had_read_the_finding_before(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    slot = a_slot()
    held = a_finding(family, slot, state=State.HELD)
    journal.put(held)
    first, second = acceptance_of(held, Kind.EXTRA_ROW), acceptance_of(held, Kind.CONTENT_LOST)
    assert journal.accept(replace(held, accepted=first, next_look=clock.now))
    looked = replace(held, sentence="is extra", next_look=9)
    journal.put(looked)
    journal.touch(looked)
    found = journal.recall(family, held.projection, [slot])[slot]
    assert found == replace(looked, accepted=first)
    assert journal.accept(replace(looked, accepted=second))
    [found] = journal.open_findings(family)
    assert found == replace(looked, accepted=first | second)
    logged = [line["accepted"] for line in journal.log(clock.day)]
    assert sorted(len(given) for given in logged if isinstance(given, list)) == [0, 0, 1, 1]


def test_what_is_accepted_ends_with_its_finding(
    journal: Journal, family: Family, clock: SetClock
) -> None:
    slot = a_slot()
    held = a_finding(family, slot, state=State.HELD)
    given = replace(held, accepted=acceptance_of(held, Kind.EXTRA_ROW))
    journal.put(held)
    assert journal.accept(given)
    journal.close(held, State.HEALED, clock.now)
    assert not journal.accept(given)
    assert list(journal.open_findings(family)) == []
    later = replace(held, found_at=held.found_at + 1)
    journal.put(later)
    assert not journal.accept(given), "it is of the one before"
    assert journal.recall(family, held.projection, [slot]) == {slot: later}
    journal.end(later, State.UNDONE)
    journal.put(held)
    assert list(journal.open_findings(family)) == [held]


def acceptance_of(finding: Finding, kind: Kind) -> frozenset[Accepted]:
    return acceptance(kind, found_at=finding.found_at)


def hold_in_the_future(store: Store, finding: Finding) -> None:
    """As a host does whose clock is ahead."""
    at = now_micros() + AHEAD
    hold = store.prepare(
        "UPDATE $ks.findings USING TIMESTAMP ? SET state = 'held'"
        " WHERE family = ? AND bucket = ? AND projection = ? AND key = ?"
    )
    key = text_of(finding.slot)
    store.run("holding", [(hold, (at, finding.family, bucket_of(key), finding.projection, key))])


@pytest.mark.parametrize("ahead", [-AHEAD, AHEAD])
def test_what_a_person_has_ended_is_gone_and_hides_nothing_later(
    journal: Journal,
    family: Family,
    kind: str,
    ahead: int,
    request: pytest.FixtureRequest,
) -> None:
    """Whatever the clock of their host, or of the one that wrote what stands there."""
    slot = a_slot()
    stands = a_finding(family, slot, state=State.INTENDED)
    journal.put(stands)
    if kind != "memory" and ahead > 0:
        hold_in_the_future(request.getfixturevalue("store"), stands)
    journal.end(stands, State.UNDONE)
    found = journal.recall(family, stands.projection, [slot])
    assert found == {}
    if ahead < 0:
        journal.put(stands)
        assert journal.recall(family, stands.projection, [slot]) == {slot: stands}
