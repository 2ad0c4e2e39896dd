"""`reconcile findings`: what is listed, how it is written, and what a person may decide."""

import csv
import io
import json
import uuid
from dataclasses import replace

import pytest

from checkpoints.codec import finding_to_json
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.decision import ACCEPTABLE, OF_MANY_ROWS
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import LostRow, LostRows, covered, together
from reconcilers.words.key import WHOLE_TABLE, text_of
from reconcilers.words.model import Kind
from reconcilers.words.waiting import Wait, Waiting
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.arguments.output import FORMATS
from streaming.commands.arguments.stored_times import with_iso_times
from streaming.commands.person.dead_letters import place_of
from streaming.commands.person.decisions import ACCEPT, RETRY, Desk
from streaming.commands.person.finding_formats import as_table, listed
from streaming.topics import Record
from tests.builders.findings import acceptance
from tests.builders.slots import mailbox_of, uid_of
from tests.contract.making import a_finding, a_slot
from tests.fakes.office import ANA, EACH, NOW, Office


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_stuck_finding_is_retried_and_its_key_published(office: Office) -> None:
    slot = office.put(Kind.MISSING_ROW, State.STUCK)
    assert office.decide(RETRY, slot) == 0
    found = office.found(slot)
    assert (found.state, found.attempts, found.writes) == (State.HELD, 0, ())
    assert [(family, each.key[0], each.key[1]) for family, each in office.published] == [
        ("message", mailbox_of(slot), uid_of(slot))
    ]


def test_the_journal_is_written_before_the_key_is_published(office: Office) -> None:
    slot = office.put(Kind.MISSING_ROW, State.STUCK)
    states: list[State] = []
    read = Desk(
        office.journal, lambda *_: states.append(office.found(slot).state), lambda: NOW, ANA
    )
    read.decide(RETRY, frozenset({text_of(slot)}), FindingFilter())
    assert states == [State.HELD]


def test_a_reported_one_is_looked_at_at_once_and_stays_reported(office: Office) -> None:
    slot = office.put(Kind.ABSENT_WITHOUT_DELETE, State.REPORTED)
    assert office.decide(RETRY, slot) == 0
    found = office.found(slot)
    assert (found.state, found.next_look) == (State.REPORTED, NOW)
    assert [wake.slot for _, wake in office.published] == [slot]


def test_the_finding_of_a_whole_table_is_not_retried(office: Office) -> None:
    row = a_finding(MESSAGE, a_slot())
    whole = replace(row, slot=WHOLE_TABLE, kind=Kind.TABLE_REFUSES, state=State.REPORTED)
    office.journal.put(whole)
    assert RETRY.refusal(whole) is not None
    assert office.decide(RETRY) == 0
    assert not office.published


@pytest.mark.parametrize("state", sorted(set(State) - {State.STUCK, State.REPORTED}))
def test_only_stuck_and_reported_ones_are_retried(state: State, office: Office) -> None:
    slot = office.put(Kind.MISSING_ROW, state)
    assert office.decide(RETRY, slot) == 1
    assert office.found(slot).state is state
    assert not office.published


def test_rows_of_which_nobody_knows_what_they_are_of_are_not_accepted(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    found = together(MESSAGE, LostRows(Kind.UNRESOLVED, 5_000, 9), NOW)
    office.journal.put(found)
    assert office.decide(ACCEPT, found.slot) == 1
    assert "once it has read the whole truth" in capsys.readouterr().out


@pytest.mark.parametrize("kind", sorted(ACCEPTABLE))
def test_a_held_class_is_accepted(kind: Kind, office: Office) -> None:
    slot = office.put(kind, State.REPORTED)
    assert office.decide(ACCEPT, slot) == 0
    assert office.found(slot).accepted
    assert len(office.published) == (kind not in OF_MANY_ROWS)


def test_what_is_systematic_is_no_key_and_waits_for_the_next_sweep(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.put(Kind.SYSTEMATIC, State.HELD)
    row = office.put(Kind.CONTENT_LOST, State.REPORTED)
    assert office.decide(ACCEPT, slot, row) == 0
    assert [wake.slot for _, wake in office.published] == [row]
    told = capsys.readouterr().out.splitlines()
    assert set(told[2:]) == {
        "1 accepted; handed over to the stream by the next sweep: `reconcile sweep`",
        "1 accepted; looked at again one delay from now",
    }
    assert office.decide(RETRY, slot) == 1
    assert "it is looked at by sweeps" in capsys.readouterr().out
    assert office.found(slot).accepted


@pytest.mark.parametrize("kind", sorted(set(Kind) - ACCEPTABLE))
def test_other_classes_are_refused_with_the_reason(
    kind: Kind, office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.put(kind, State.REPORTED)
    assert office.decide(ACCEPT, slot) == 1
    assert not office.found(slot).accepted
    assert not office.published
    assert f"refused  {mailbox_of(slot)}/7 {kind}: " in capsys.readouterr().out


def test_another_doubt_than_was_listed_is_not_accepted(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the question is asked, a look finds that the stream is behind no more."""
    slot = office.put(Kind.EXTRA_ROW, State.HELD)
    held = replace(office.found(slot), waits=Waiting(Wait.BEHIND, "no canary"))
    office.journal.put(held)

    def agreed(_question: str) -> bool:
        office.journal.put(replace(held, kind=Kind.CONTENT_LOST, state=State.REPORTED))
        return True

    desk = office.deciding(replace(ANA, agreed=agreed))
    assert desk.decide(ACCEPT, None, EACH) == 1
    assert not office.found(slot).accepted
    assert "no longer as it was listed" in capsys.readouterr().out


def test_rows_that_were_counted_after_the_list_are_not_accepted(office: Office) -> None:
    """While the question is asked, a sweep goes on counting."""
    listed = together(MESSAGE, LostRows(Kind.ABSENT_WITHOUT_DELETE, 2_000, 1), NOW - 9)
    office.journal.put(listed)

    def agreed(_question: str) -> bool:
        more = together(MESSAGE, LostRows(Kind.ABSENT_WITHOUT_DELETE, 9_000, 5), NOW - 1)
        office.journal.touch(replace(more, found_at=listed.found_at))
        return True

    assert office.deciding(replace(ANA, agreed=agreed)).decide(ACCEPT, None, EACH) == 0
    group = office.found(listed.slot)
    counted = {
        at: LostRow(a_slot(), Kind.ABSENT_WITHOUT_DELETE, at, at) for at in (NOW - 9, NOW - 8)
    }
    taken = {at: bool(covered(group, row, row.reason)) for at, row in counted.items()}
    assert taken == {NOW - 9: True, NOW - 8: False}


def test_a_finding_that_is_newer_than_the_list_is_not_accepted(office: Office) -> None:
    """While the question is asked, the listed one ends, and its row is found again."""
    slot = office.put(Kind.CONTENT_LOST, State.REPORTED)
    listed = office.found(slot)

    def agreed(_question: str) -> bool:
        office.journal.close(listed, State.HEALED, NOW)
        office.journal.put(replace(listed, found_at=listed.found_at + 1))
        return True

    assert office.deciding(replace(ANA, agreed=agreed)).decide(ACCEPT, None, EACH) == 1
    assert not office.found(slot).accepted


def test_what_ends_meanwhile_is_not_called_accepted(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    slot, journal = office.put(Kind.CONTENT_LOST, State.REPORTED), office.journal
    accept = journal.accept

    def after_its_end(finding: Finding) -> bool:
        journal.close(finding, State.HEALED, NOW)
        return accept(finding)

    journal.accept = after_its_end  # type: ignore[method-assign]
    assert office.decide(ACCEPT, slot) == 1
    assert capsys.readouterr().out.endswith("nothing done\n")
    assert not office.published


def test_all_takes_what_matches_and_may_be_decided(office: Office) -> None:
    one = office.put(Kind.SHADOWED_DELETE, State.REPORTED)
    other = office.put(Kind.AMBIGUOUS_RANGE_DELETE, State.REPORTED)
    office.put(Kind.DUPLICATE_UID, State.REPORTED)
    assert office.decide(ACCEPT, wanted=FindingFilter(kind="shadowed_delete")) == 0
    assert office.found(one).accepted_kinds == {Kind.SHADOWED_DELETE}
    assert not office.found(other).accepted
    assert office.decide(ACCEPT, wanted=FindingFilter(mailbox=mailbox_of(other))) == 0
    assert office.found(other).accepted
    assert len(office.published) == 2


def test_what_is_not_there_or_filtered_out_is_said(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = office.put(Kind.MISSING_ROW, State.STUCK)
    absent = a_slot(9)
    assert office.decide(RETRY, slot, absent) == 1
    assert office.found(slot).state is State.HELD
    assert f"unknown  {mailbox_of(absent)}/9" in capsys.readouterr().out
    assert office.decide(RETRY, slot, wanted=FindingFilter(projection="other")) == 1


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (FindingFilter(), True),
        (FindingFilter(state="stuck"), True),
        (FindingFilter(state="held"), False),
        (FindingFilter(kind="missing_row", projection="messages"), True),
        (FindingFilter(kind="extra_row"), False),
        (FindingFilter(projection="deleted_uids"), False),
        (FindingFilter(mailbox=uuid.uuid1()), False),
    ],
)
def test_filters(wanted: FindingFilter, matches: bool) -> None:
    finding = a_finding(MESSAGE, a_slot(), kind=Kind.MISSING_ROW, state=State.STUCK)
    assert wanted.has(finding_to_json(finding, MESSAGE)) is matches


# --- how they are written -----------------------------------------------------------------------


def test_json_lines_hold_everything() -> None:
    told = finding_to_json(a_finding(MESSAGE, a_slot()), MESSAGE)
    (line,) = listed("jsonl", [told])
    assert json.loads(line) == with_iso_times(told)
    assert json.loads(line).keys() == told.keys()


@pytest.mark.parametrize(
    ("sentence", "cell"),
    [('a, "b"', 'a, "b"'), ("=HYPERLINK(1)", "'=HYPERLINK(1)"), ("\t=1", "'\t=1")],
)
def test_csv_has_a_header_survives_commas_and_quotes_and_is_no_formula(
    sentence: str, cell: str
) -> None:
    finding = a_finding(MESSAGE, a_slot(), sentence=sentence, source=None)
    header, row = csv.reader(
        io.StringIO("\n".join(listed("csv", [finding_to_json(finding, MESSAGE)])))
    )
    told = dict(zip(header, row, strict=True))
    assert told["sentence"] == cell
    assert (told["messageid"], told["uid"]) == ("", "7")
    assert told["found_at"] == "2023-11-14T22:13:20+00:00"


def test_the_table_has_the_sentence_and_the_place() -> None:
    slot = a_slot()
    found = a_finding(MESSAGE, slot, accepted=acceptance(Kind.CONTENT_LOST))
    where, sentence = as_table([finding_to_json(found, MESSAGE)])
    assert f"{mailbox_of(slot)}/{uid_of(slot)}" in where
    assert where.endswith("2 attempts, accepted: content_lost")
    assert sentence.strip().startswith("messages: differs in")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_nothing_and_a_line_of_the_log(name: str) -> None:
    told = {"at": NOW, **finding_to_json(a_finding(MESSAGE, a_slot()), MESSAGE)}
    assert (
        "\n".join(listed(name, []))
        == {
            "table": "no findings",
            "json": "[]",
            "jsonl": "",
            "csv": "\n".join(listed("csv", [])),
        }[name]
    )
    text = "\n".join(listed(name, [told]))
    seconds = "2027-01-15T08:00:00+00:00" if name in {"table", "csv"} else "T08:00:00.000000+00:00"
    assert seconds in text
    assert str(NOW) not in text


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"topic": "t"}', b"\xff"])
def test_what_is_no_dead_letter_is_told_apart(value: bytes | None) -> None:
    assert place_of(Record("d", 0, 0, None, value)) is None
