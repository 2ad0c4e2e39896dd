"""`findings --undo`, `--release`: which keys are meant, what is asked, shown and told."""

from __future__ import annotations

import argparse
import io
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid1, uuid4

import pytest

from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import UNDO
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Slot, look_again
from reconcilers.words.waiting import Wait
from streaming.commands.arguments.finding_filter import (
    FindingFilter,
    TheirPlaces,
    add_filter,
    filter_of,
)
from streaming.commands.arguments.times import moment_of
from streaming.commands.person import findings
from streaming.commands.person.decisions import RETRY
from streaming.commands.person.orders import Orders
from streaming.commands.person.undo import Planned, UndoDesk
from streaming.steps.undo import Undoing, Undone
from streaming.tables.rate_limit import RateLimiter
from tests.contract.making import a_finding, a_slot
from tests.fakes.office import ANA, EACH, NOW, Office

HOUR = 3_600_000_000


@dataclass
class Undoer:
    """Undoes whatever it is told to, unless it has a reason not to."""

    done: list[Finding] = field(default_factory=list)
    why: str | None = None

    def plan(self, repair: Finding) -> Planned | str:
        return self.why or repair.writes

    def carry_out(self, repair: Finding, hold: Hold) -> Undone:
        assert (hold.slot, hold.who) == (repair.slot, "ana")
        if self.why is not None:
            return Undone(Undoing.REFUSED, self.why)
        self.done.append(repair)
        return Undone(Undoing.DONE, "put back")


@dataclass
class UndoOffice(Office):
    """One that also undoes repairs, and ends holds."""

    undoer: Undoer = field(default_factory=Undoer)

    def repaired(self, kind: Kind = Kind.MISSING_ROW, at: int = NOW - HOUR) -> Slot:
        slot = a_slot()
        found = a_finding(MESSAGE, slot, kind=kind, tried_at=at)
        self.journal.close(found, State.VERIFIED, at)
        return slot

    def desk(self, orders: Orders = ANA) -> UndoDesk:
        by_family = {MESSAGE.name: (MESSAGE, self.undoer)}
        return UndoDesk(self.journal, by_family, orders, RateLimiter(10**9))

    @property
    def undone(self) -> list[Slot]:
        return [each.slot for each in self.undoer.done]

    def hold(self, slot: Slot, projection: str = "messages") -> Hold:
        hold = Hold(MESSAGE.name, projection, slot, NOW, "ana", "a look")
        self.journal.holds.place(hold)
        return hold


@pytest.fixture
def office() -> UndoOffice:
    return UndoOffice()


def keys(*slots: Slot) -> frozenset[str]:
    return frozenset(map(text_of, slots))


def test_the_repair_of_a_key_that_is_named_is_undone(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    one, _other = office.repaired(), office.repaired()
    assert office.desk().undo(keys(one), FindingFilter()) == 0
    assert office.undone == [one]
    out = capsys.readouterr().out
    assert f"undone   {text_of(one)} messages: put back" in out
    assert "1 undone, and on hold: `reconcile findings --release KEY` ends that" in out


def test_one_without_a_repair_is_unknown(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert office.desk().undo(keys(a_slot(9)), FindingFilter()) == 1
    assert "unknown" in capsys.readouterr().out


def test_a_refusal_is_told_and_the_others_are_done(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    one = office.repaired()
    office.undoer.why = "a user has changed it"
    assert office.desk().undo(keys(one), FindingFilter()) == 1
    out = capsys.readouterr().out
    assert f"refused  {text_of(one)} messages: a user has changed it" in out
    assert out.endswith("nothing done\n")


def test_only_shown_nothing_is_done(office: UndoOffice, capsys: pytest.CaptureFixture[str]) -> None:
    one = office.repaired()
    shown = replace(ANA, dry_run=True)
    assert office.desk(shown).undo(keys(one), FindingFilter()) == 0
    assert office.undone == []
    out = capsys.readouterr().out
    assert "would be undone" in out
    assert "SetCells cells {'modseq': 5, 'flagseen': None}" in out
    assert out.endswith("1 would be undone; nothing done\n")


def test_all_of_a_time_are_undone_after_a_question(office: UndoOffice) -> None:
    asked: list[str] = []

    def agreed(question: str) -> bool:
        asked.append(question)
        return True

    old, new = office.repaired(at=NOW - 3 * HOUR), office.repaired()
    office.repaired(kind=Kind.EXTRA_ROW)
    wanted = FindingFilter(since=NOW - 2 * HOUR, kind="missing_row")
    assert office.desk(replace(ANA, agreed=agreed)).undo(None, wanted) == 0
    assert asked == ["1 repairs will be undone: go on?"]
    assert office.undone == [new]
    assert old not in office.undone


def test_without_agreement_nothing_is_done(office: UndoOffice) -> None:
    office.repaired()
    refusing = replace(ANA, agreed=lambda _: False)
    assert office.desk(refusing).undo(None, FindingFilter(since=0)) == 1
    assert office.undone == []


def test_all_needs_a_time_and_no_state(office: UndoOffice) -> None:
    with pytest.raises(Misconfigured, match="--since"):
        office.desk().undo(None, FindingFilter())
    with pytest.raises(Misconfigured, match="--state"):
        office.desk().undo(None, FindingFilter(since=0, state="verified"))


def test_a_later_repair_than_was_meant_is_refused(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.repaired(at=NOW - 3 * HOUR)
    again = a_finding(MESSAGE, slot, kind=Kind.MISSING_ROW, tried_at=NOW)
    office.journal.close(again, State.VERIFIED, NOW)
    office.desk().undo(None, FindingFilter(since=NOW - 4 * HOUR, until=NOW - HOUR))
    assert "repaired again after the time of --until" in capsys.readouterr().out
    assert office.undone == []


def test_what_was_undone_in_that_time_is_no_repair_of_it(office: UndoOffice) -> None:
    undone = a_finding(MESSAGE, a_slot(), batch=UNDO)
    office.journal.close(undone, State.UNDONE, NOW)
    assert office.desk().undo(None, FindingFilter(since=0)) == 0
    assert office.undone == []


def test_a_key_of_another_projection_is_another(office: UndoOffice) -> None:
    slot = office.repaired()
    assert office.desk().undo(keys(slot), FindingFilter(projection="deleted_uids")) == 1
    assert office.undone == []


# --- release


def test_a_key_is_released_looked_at_again_and_the_finding_says_who(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = a_slot()
    hold = office.hold(slot)
    held = a_finding(MESSAGE, slot, state=State.HELD, sentence="is missing")
    office.journal.put(replace(held, waits=hold.waiting))
    assert office.deciding().release(keys(slot), FindingFilter()) == 0
    assert list(office.journal.holds.all(MESSAGE)) == []
    found = office.found(slot)
    assert found.told == "is missing; released by ana: a test"
    assert found.wait is Wait.LOOK
    assert [wake.slot for _, wake in office.published] == [slot]
    assert f"released {text_of(slot)} messages: it was on hold by ana" in capsys.readouterr().out


def test_killed_before_its_key_is_published_a_hold_stands_and_can_be_released_again(
    office: UndoOffice,
) -> None:
    """What was undone has no finding: nothing else would ever look at it."""
    slot = a_slot()
    office.hold(slot)
    killed = patch.object(Office, "publish", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        office.deciding().release(keys(slot), FindingFilter())
    assert [each.slot for each in office.journal.holds.all(MESSAGE)] == [slot]
    assert office.deciding().release(keys(slot), FindingFilter()) == 0
    assert [wake.slot for _, wake in office.published] == [slot]


def test_what_was_undone_is_looked_at_with_the_source_that_its_log_names(
    office: UndoOffice,
) -> None:
    """Neither the key nor the row of an attachment need name its message after an undo."""
    slot, message = Slot(uuid4()), uuid1()
    named = {"projection": "attachments", "source": str(message), "writes": ()}
    undone = a_finding(ATTACHMENT, slot, **named)
    office.journal.end(undone, State.UNDONE)
    office.journal.holds.place(Hold(ATTACHMENT.name, "attachments", slot, NOW, "ana", "a look"))
    assert office.deciding().release(keys(slot), FindingFilter()) == 0
    assert office.published == [(ATTACHMENT.name, look_again(slot, "attachments", message))]


def test_a_key_that_is_not_on_hold_is_unknown(office: UndoOffice) -> None:
    office.hold(a_slot())
    assert office.deciding().release(keys(a_slot(9)), FindingFilter()) == 1
    assert len(list(office.journal.holds.all(MESSAGE))) == 1


def test_all_that_match_are_released_after_a_question(office: UndoOffice) -> None:
    office.hold(a_slot())
    office.hold(a_slot(), "deleted_uids")
    wanted = FindingFilter(projection="deleted_uids")
    assert office.deciding(replace(ANA, agreed=lambda _: False)).release(None, wanted) == 1
    assert len(list(office.journal.holds.all(MESSAGE))) == 2
    assert office.deciding().release(None, wanted) == 0
    assert [each.projection for each in office.journal.holds.all(MESSAGE)] == ["messages"]


def test_only_shown_no_hold_ends(office: UndoOffice) -> None:
    slot = a_slot()
    office.hold(slot)
    assert office.deciding(replace(ANA, dry_run=True)).release(keys(slot), FindingFilter()) == 0
    assert len(list(office.journal.holds.all(MESSAGE))) == 1
    assert office.published == []


# --- decisions


def test_a_decision_says_who_and_why_in_the_log_and_only_shown_it_says_nothing(
    office: UndoOffice,
) -> None:
    slot = a_slot()
    office.journal.put(a_finding(MESSAGE, slot, state=State.STUCK, sentence="is missing"))
    office.deciding(replace(ANA, dry_run=True)).decide(RETRY, keys(slot), FindingFilter())
    assert office.found(slot).state is State.STUCK
    office.deciding().decide(RETRY, keys(slot), FindingFilter())
    found = next(iter(office.journal.history(MESSAGE, "messages", slot)))
    assert (found.state, found.sentence) == (State.HELD, "is missing; retried by ana: a test")


def test_all_that_match_are_decided_on_after_a_question(office: UndoOffice) -> None:
    for _ in range(2):
        office.journal.put(a_finding(MESSAGE, a_slot(), state=State.STUCK))
    office.journal.put(a_finding(MESSAGE, a_slot(), state=State.HELD))
    asked: list[str] = []

    def declined(question: str) -> bool:
        asked.append(question)
        return False

    no = replace(ANA, agreed=declined)
    assert office.deciding(no).decide(RETRY, None, FindingFilter()) == 1
    assert asked == ["2 findings will be retried: go on?"]
    assert office.published == []


def test_a_finding_that_comes_during_the_question_is_not_decided_on(office: UndoOffice) -> None:
    """A person who has agreed to two has not agreed to five hundred."""
    known = office.put(Kind.MISSING_ROW, State.STUCK)
    came: list[Slot] = []

    def meanwhile(_question: str) -> bool:
        came.append(office.put(Kind.MISSING_ROW, State.STUCK))
        return True

    assert office.deciding(replace(ANA, agreed=meanwhile)).decide(RETRY, None, EACH) == 0
    assert office.found(known).state is State.HELD
    assert office.found(came[0]).state is State.STUCK


@pytest.mark.parametrize(
    "change",
    [{"kind": Kind.EXTRA_ROW}, {"state": State.INTENDED}, None],
    ids=["another kind", "no longer stuck", "ended"],
)
def test_one_that_changes_during_the_question_is_left(
    office: UndoOffice, change: dict[str, Any] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.put(Kind.MISSING_ROW, State.STUCK)

    def meanwhile(_question: str) -> bool:
        if change is None:
            office.journal.close(office.found(slot), State.HEALED, NOW)
        else:
            office.journal.put(replace(office.found(slot), **change))
        return True

    assert office.deciding(replace(ANA, agreed=meanwhile)).decide(RETRY, None, EACH) == 1
    assert "no longer as it was listed" in capsys.readouterr().out
    assert office.published == []


def test_the_question_shows_each_kind_and_removals_first(
    office: UndoOffice, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in (Kind.DIFFERING_CELLS, Kind.EXTRA_ROW, Kind.DIFFERING_CELLS):
        office.put(kind, State.STUCK)
    office.deciding(replace(ANA, agreed=lambda _: False)).decide(RETRY, None, EACH)
    assert capsys.readouterr().out.splitlines() == [
        "       1 extra_row (a removal)",
        "       2 differing_cells",
        "nothing done",
    ]


@pytest.mark.parametrize(("system", "asked"), [(None, 1), ("unseen_uids", 0)])
def test_a_key_with_repairs_of_several_systems_is_asked_about(
    office: UndoOffice, system: str | None, asked: int, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.repaired()
    second = a_finding(MESSAGE, slot, kind=Kind.EXTRA_ROW, tried_at=NOW - HOUR)
    office.journal.close(replace(second, projection="unseen_uids"), State.VERIFIED, NOW - HOUR)
    questions: list[str] = []

    def declined(question: str) -> bool:
        questions.append(question)
        return False

    desk = office.desk(replace(ANA, agreed=declined))
    assert desk.undo(keys(slot), FindingFilter(projection=system)) == asked
    assert len(questions) == asked
    assert len(office.undone) == 1 - asked
    if asked:
        assert f"{text_of(slot)} unseen_uids: " in capsys.readouterr().out


def arguments(**given: object) -> argparse.Namespace:
    standard = {"all": True, "yes": False, "dry_run": False, "while_paused": False}
    return argparse.Namespace(**{**standard, "who": "ana", "reason": "a test", **given})


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(Misconfigured, match="Without a terminal, --yes answers"):
        Orders.of(arguments()).agreed("go on?")
    for quiet in ({"yes": True}, {"dry_run": True}):
        assert Orders.of(arguments(**quiet)).agreed("go on?")


@pytest.mark.parametrize(
    ("answer", "agrees"), [("y", True), (" Yes ", True), ("", False), ("n", False)]
)
def test_the_answer_counts(monkeypatch: pytest.MonkeyPatch, answer: str, agrees: object) -> None:
    terminal = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert Orders.of(arguments()).agreed("go on?") is agrees


# --- the filter

MAILBOX = UUID("11111111-0000-1000-8000-000000000001")
BOB = TheirPlaces(frozenset({str(MAILBOX)}), "#private&bob")


def test_a_users_findings_are_those_of_their_mailboxes_and_of_their_quota() -> None:
    wanted = FindingFilter(user=BOB)
    assert wanted.takes(MESSAGE, a_finding(MESSAGE, Slot(MAILBOX, 7)))
    assert not wanted.takes(MESSAGE, a_finding(MESSAGE, a_slot()))
    quota = a_finding(USER_TALLY, Slot("#private&bob"), writes=())
    assert wanted.takes(USER_TALLY, quota)
    assert not wanted.takes(USER_TALLY, replace(quota, slot=Slot("#private&alice")))


def test_a_time_is_from_one_moment_up_to_another() -> None:
    finding = a_finding(MESSAGE, a_slot(), found_at=NOW)
    assert FindingFilter(since=NOW, until=NOW + 1).takes(MESSAGE, finding)
    assert not FindingFilter(until=NOW).takes(MESSAGE, finding)
    assert not FindingFilter(since=NOW + 1).takes(MESSAGE, finding)


def test_the_days_of_a_time_are_all_that_it_touches() -> None:
    day = 24 * HOUR
    touched = FindingFilter(since=NOW - 2 * day, until=NOW - day).days(NOW)
    assert [each.isoformat() for each in touched] == ["2027-01-13", "2027-01-14"]
    assert [each.isoformat() for each in FindingFilter().days(NOW)] == ["2027-01-15"]


def test_what_is_mistyped_is_told_with_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_filter(parser)
    for words, told in (
        (["--kind", "missing_rows"], "did you mean missing_row?"),
        (["--system", "nothing"], "one of messages, deleted_uids"),
        (["--since", "yesterday"], "no time as"),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert told in capsys.readouterr().err


def test_the_words_of_the_command_line_make_the_filter() -> None:
    parser = argparse.ArgumentParser()
    add_filter(parser)
    given = parser.parse_args(["--system", "messages", "--user", "bob", "--until", "2027-01-15"])
    asked: list[QuotaRoot] = []

    def mailboxes(root: QuotaRoot) -> list[UUID]:
        asked.append(root)
        return [MAILBOX]

    wanted = filter_of(given, mailboxes)
    assert wanted == FindingFilter(projection="messages", user=BOB, until=1_799_971_200_000_000)
    assert asked == [QuotaRoot("#private", "bob")]
    assert filter_of(parser.parse_args([]), mailboxes) == FindingFilter()


def test_the_log_is_of_a_day_or_without_one_of_the_time_that_is_meant() -> None:
    parser = argparse.ArgumentParser()
    findings.add_arguments(parser)
    day = parser.parse_args(["--log", "2026-11-21"]).log
    assert day == date(2026, 11, 21)
    assert parser.parse_args(["--log"]).log == ()
    assert parser.parse_args([]).log is None


def test_a_moment_may_be_told_as_how_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.commands.arguments.times.now_micros", lambda: NOW)
    assert moment_of("2h") == NOW - 2 * HOUR
