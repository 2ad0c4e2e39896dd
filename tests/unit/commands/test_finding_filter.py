"""What the list of findings prints, how much of it, and which findings a person's words name."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from checkpoints.codec import Json, accepted_to_json, finding_to_json
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.rows.finding import State
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import RULES, Wait, Waiting
from streaming.commands.arguments import finding_filter, times
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.person import finding_formats
from streaming.commands.person import findings as command
from streaming.commands.person.decisions import ACCEPT, RETRY
from streaming.commands.person.finding_formats import as_table
from tests.builders.counters import OF_MAILBOX
from tests.builders.findings import acceptance
from tests.builders.found import finding_of
from tests.builders.rows import MAILBOX, OTHER_MAILBOX
from tests.contract.making import a_finding
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.office import NOW, Office

SLOT = Slot(MAILBOX, 7)


def told(count: int) -> list[Json]:
    return [
        finding_to_json(a_finding(MESSAGE, Slot(MAILBOX, uid)), MESSAGE) for uid in range(count)
    ]


def listed(count: int, capsys: pytest.CaptureFixture[str], **chosen: object) -> list[str]:
    arguments = argparse.Namespace(**{"format": "table", "limit": None, **chosen})
    command._list(iter(told(count)), arguments)
    return capsys.readouterr().out.splitlines()


# --- how much is listed --------------------------------------------------------------------------


def test_a_table_ends_after_a_hundred_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(101, capsys)
    assert len(lines) == 201
    assert lines[-1] == "… and more: --limit, or --format jsonl (shown: 100)"


def test_a_table_that_is_whole_says_nothing_of_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(listed(100, capsys)) == 200
    assert len(listed(2, capsys, limit=2)) == 4


def test_a_limit_holds_for_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(3, capsys, limit=1)[-1].endswith("(shown: 1)")
    lines = listed(3, capsys, limit=1, format="jsonl")
    assert [json.loads(line)["uid"] for line in lines] == [0]
    assert len(listed(3, capsys, limit=1, format="csv")) == 2


def test_without_a_limit_other_formats_hold_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(listed(150, capsys, format="jsonl")) == 150


def test_nothing_is_said_to_be_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(0, capsys) == ["no findings"]


def test_the_open_findings_of_every_family_are_listed_as_far_as_they_are_meant() -> None:
    journal = MemoryJournal(lambda: NOW)
    found = [
        a_finding(MESSAGE, SLOT, kind=Kind.EXTRA_ROW),
        a_finding(MAILBOX_TALLY, Slot(MAILBOX), projection=MAILBOX_COUNTERS.name, writes=()),
        a_finding(USER_TALLY, Slot("#private&bob"), projection=CURRENT_QUOTA.name, writes=()),
    ]
    for each in found:
        journal.put(each)

    def names(wanted: FindingFilter) -> list[object]:
        lines = command._as_json(command._open(journal), wanted)
        return [(each["family"], each.get("mailboxid")) for each in lines]

    message, mailbox = ("message", str(MAILBOX)), ("mailbox_tally", str(MAILBOX))
    assert names(FindingFilter()) == [message, mailbox, ("user_tally", None)]
    assert names(FindingFilter(mailbox=MAILBOX)) == [message, mailbox]
    assert names(FindingFilter(kind="extra_row")) == [message]


# --- a line --------------------------------------------------------------------------------------


def line(**changes: object) -> str:
    first, sentence = as_table([{**told(1)[0], **changes}])
    assert sentence.startswith("    ")
    return first


def test_a_line_tells_attempts_and_acceptance_only_where_there_are_any() -> None:
    [given] = acceptance(Kind.EXTRA_ROW, Wait.BEHIND)
    told = line(attempts=2, accepted=[accepted_to_json(given)])
    assert told.endswith("/0, 2 attempts, accepted: extra_row (behind)")
    assert line(attempts=0, accepted=[]).endswith(f"{MAILBOX}/0")


def test_a_line_of_the_log_has_the_time_of_its_writing_and_a_finding_when_it_was_found() -> None:
    found = told(1)[0] | {"found_at": 1_700_000_000_999_999}
    assert line(**found).startswith("2023-11-14T22:13:20+00:00  ")
    assert line(**found, at=1_700_000_060_000_000).startswith("2023-11-14T22:14:20+00:00  ")


def test_the_columns_of_a_csv_line_are_times_and_texts() -> None:
    changes = {"next_look": None, "found_at": 1_700_000_000_000_000, "sentence": "+1, or so"}
    header, row = finding_formats.listed("csv", [told(1)[0] | changes])
    cells = dict(zip(header.split(","), row.split(","), strict=False))
    assert cells["time"] == cells["found_at"] == "2023-11-14T22:13:20+00:00"
    assert cells["next_look"] == ""
    assert (cells["mailboxid"], cells["uid"]) == (str(MAILBOX), "0")
    assert row.endswith('"\'+1, or so"')


# --- what a person names -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", f"{MAILBOX}/", "no-id/7", "a/b/c", "7"])
def test_what_is_no_place_is_refused_with_how_it_is_written(text: str) -> None:
    shapes = (
        "MAILBOXID/UID, USERNAME/MAILBOXID, MAILBOXID/NAME, USERNAME/NAMESPACE/MAILBOXNAME,"
        " IDASUUID, ATTACHMENTIDASUUID/MESSAGE, MAILBOXID, QUOTAROOT"
    )
    told = f"^'{text}' is not any of {shapes}, as the list shows them$"
    with pytest.raises(argparse.ArgumentTypeError, match=told):
        finding_filter.key_of(text)


def places(text: str) -> dict[str, Slot]:
    return {family.name: slot for family, slot in finding_filter.slots_named(FAMILIES, text)}


def test_what_is_no_message_may_be_what_a_counter_is_of() -> None:
    assert places("#private&7") == {USER_TALLY.name: Slot("#private&7")}
    either = (MAILBOX_TALLY, ATTACHMENT)
    assert places(f"{MAILBOX}") == {each.name: Slot(MAILBOX) for each in either}
    assert places(f"bob@example.org/{MAILBOX}") == {RIGHTS.name: Slot("bob@example.org", MAILBOX)}


def test_the_shape_of_a_key_tells_the_system_and_where_it_does_not_all_are_meant() -> None:
    """A name may be a number, or a mailbox's id: --system then says which is meant."""
    assert places(f"{MAILBOX}/bob") == {RIGHT_LISTS.name: Slot(MAILBOX, "bob")}
    assert places(f"{MAILBOX}/7") == {MESSAGE.name: SLOT, RIGHT_LISTS.name: Slot(MAILBOX, "7")}
    both, text = f"{MAILBOX}/{OTHER_MAILBOX}", (str(MAILBOX), str(OTHER_MAILBOX))
    assert places(both) == {
        RIGHTS.name: Slot(text[0], OTHER_MAILBOX),
        RIGHT_LISTS.name: Slot(MAILBOX, text[1]),
        ATTACHMENT_REFERENCE.name: Slot(MAILBOX, text[1]),
    }


def test_places_ids_and_days_are_read() -> None:
    assert finding_filter.key_of(f"{MAILBOX}/7") == f"{MAILBOX}/7"
    assert times.uuid_of(str(MAILBOX)) == MAILBOX
    assert times.day_of("2026-11-21") == date(2026, 11, 21)
    assert times.day_of("today") == datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("read", "text", "wanted"),
    [
        (times.uuid_of, "inbox", "a mailbox id"),
        (times.day_of, "21.11.", "a day as YYYY-MM-DD"),
    ],
)
def test_what_cannot_be_read_says_what_is_wanted(read: object, text: str, wanted: str) -> None:
    assert callable(read)
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not {wanted}"):
        read(text)


def chosen(*slots: Slot, **arguments: object) -> frozenset[str] | None:
    keys = {"retry": None, "accept": [text_of(slot) for slot in slots], "undo": None}
    given = argparse.Namespace(**{**keys, "release": None, "log": None, "all": False, **arguments})
    return command._chosen(given)


def test_slots_are_named_or_all_are_meant_and_never_both_or_neither() -> None:
    assert chosen(SLOT, SLOT) == frozenset({f"{MAILBOX}/7"})
    assert chosen(all=True) is None
    for wrong in ({"all": True, "slots": (SLOT,)}, {"slots": ()}):
        slots = wrong.pop("slots")
        assert isinstance(slots, tuple)
        with pytest.raises(Misconfigured, match="name what to decide"):
            chosen(*slots, **wrong)


def test_the_log_is_not_decided_on() -> None:
    with pytest.raises(Misconfigured, match="--log only lists"):
        chosen(SLOT, log=date(2026, 11, 21))


# --- decisions -----------------------------------------------------------------------------------


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_counters_finding_is_decided_and_not_published(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    office.journal.put(finding_of(OF_MAILBOX, State.STUCK))
    assert office.decide(RETRY, Slot(MAILBOX)) == 0
    assert office.published == []
    out = capsys.readouterr().out
    assert f"retried  {MAILBOX} counter_drift" in out
    assert out.endswith("1 retried; looked at again one delay from now\n")


def test_one_that_is_refused_or_unknown_makes_it_fail_and_the_others_are_done(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck, held, unknown = (Slot(MAILBOX, uid) for uid in (1, 2, 3))
    office.journal.put(a_finding(MESSAGE, stuck, state=State.STUCK))
    office.journal.put(a_finding(MESSAGE, held, state=State.HELD))
    assert office.decide(RETRY, stuck, held) == 1
    assert [family for family, _ in office.published] == ["message"]
    assert f"refused  {MAILBOX}/2" in capsys.readouterr().out
    assert office.decide(RETRY, unknown) == 1
    assert len(office.published) == 1
    out = capsys.readouterr().out
    assert f"unknown  {MAILBOX}/3: no open finding there matches" in out
    assert out.endswith("nothing done\n")


@pytest.mark.parametrize(
    ("kind", "wait", "why"),
    [
        (Kind.COUNTER_DRIFT, Wait.NODE_AWAY, str(RULES[Wait.NODE_AWAY])),
        (Kind.MISSING_ROW, Wait.BREAKER, str(RULES[Wait.BREAKER])),
        (Kind.MISSING_ROW, None, "missing_row cannot be decided here, only: "),
    ],
)
def test_what_may_not_be_accepted_says_why(kind: Kind, wait: Wait | None, why: str) -> None:
    waits = None if wait is None else Waiting(wait, "a reason")
    state = State.REPORTED if wait is None else State.HELD
    found = a_finding(MESSAGE, SLOT, kind=kind, state=state, waits=waits)
    refusal = ACCEPT.refusal(found)
    assert refusal is not None
    assert refusal.startswith(why)


def test_what_waits_for_the_stream_may_be_accepted() -> None:
    """A node that is away for weeks must not leave a person helpless."""
    waits = a_finding(MESSAGE, SLOT, kind=Kind.EXTRA_ROW, state=State.HELD)
    waits = replace(waits, waits=Waiting(Wait.BREAKER, "too many"))
    behind = replace(waits, waits=Waiting(Wait.BEHIND, "the stream is behind"))
    assert ACCEPT.refusal(waits) is not None
    assert ACCEPT.refusal(behind) is None


def test_what_may_not_be_retried_says_its_state() -> None:
    held = a_finding(MESSAGE, SLOT, state=State.HELD)
    assert RETRY.refusal(held) == "it is held, not stuck: the stream looks at it automatically"
    for may in ({"state": State.STUCK}, {"kind": Kind.UNREADABLE, "state": State.REPORTED}):
        assert RETRY.refusal(a_finding(MESSAGE, SLOT, **may)) is None
