"""`reconcile findings`: what is listed, how it is written, and what a person may decide."""

import csv
import io
import json
import uuid
from collections.abc import Iterable
from dataclasses import replace

import pytest

from checkpoints.codec import finding_to_json
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.rows.decision import ACCEPTABLE, OF_MANY_ROWS
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import LostRows, together
from reconcilers.words.key import WHOLE_TABLE, text_of
from reconcilers.words.model import Kind, Slot, Wake
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.person.dead_letters import place_of
from streaming.commands.person.decisions import ACCEPT, RETRY, Desk
from streaming.commands.person.finding_formats import FORMATS, as_csv, as_json_lines, as_table
from streaming.commands.person.orders import Orders
from streaming.topics import Record
from tests.builders.slots import mailbox_of, uid_of
from tests.contract.making import a_finding, a_slot
from tests.fakes.checkpoints.memory import MemoryJournal

NOW = 1_800_000_000_000_000
ORDERS = Orders("ana", "a test")


class Published(list[tuple[str, Wake]]):
    def __call__(self, family: Family, wakes: Iterable[Wake]) -> None:
        self.extend((family.name, wake) for wake in wakes)


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def desk(journal: MemoryJournal, published: Published) -> Desk:
    return Desk(journal, published, lambda: NOW, ORDERS)


def put(journal: MemoryJournal, kind: Kind, state: State) -> Slot:
    slot = a_slot()
    journal.put(a_finding(MESSAGE, slot, kind=kind, state=state, accepted=False))
    return slot


def now_at(journal: MemoryJournal, slot: Slot) -> Finding:
    return journal.recall(MESSAGE, "messages", [slot])[slot]


def test_a_stuck_finding_is_retried_and_its_key_published(
    desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    slot = put(journal, Kind.MISSING_ROW, State.STUCK)
    assert desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter()) == 0
    found = now_at(journal, slot)
    assert (found.state, found.attempts, found.writes) == (State.HELD, 0, ())
    assert [(family, each.key[0], each.key[1]) for family, each in published] == [
        ("message", mailbox_of(slot), uid_of(slot))
    ]


def test_the_journal_is_written_before_the_key_is_published(journal: MemoryJournal) -> None:
    slot = put(journal, Kind.MISSING_ROW, State.STUCK)
    states: list[State] = []
    desk = Desk(journal, lambda *_: states.append(now_at(journal, slot).state), lambda: NOW, ORDERS)
    desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter())
    assert states == [State.HELD]


def test_a_reported_one_is_looked_at_at_once_and_stays_reported(
    desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    slot = put(journal, Kind.ABSENT_WITHOUT_DELETE, State.REPORTED)
    assert desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter()) == 0
    found = now_at(journal, slot)
    assert (found.state, found.next_look) == (State.REPORTED, NOW)
    assert [wake.slot for _, wake in published] == [slot]


def test_the_finding_of_a_whole_table_is_not_retried(
    desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    row = a_finding(MESSAGE, a_slot())
    whole = replace(row, slot=WHOLE_TABLE, kind=Kind.TABLE_REFUSES, state=State.REPORTED)
    journal.put(whole)
    assert RETRY.refusal(whole) is not None
    assert desk.decide(RETRY, None, FindingFilter()) == 0
    assert not published


@pytest.mark.parametrize("state", sorted(set(State) - {State.STUCK, State.REPORTED}))
def test_only_stuck_and_reported_ones_are_retried(
    state: State, desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    slot = put(journal, Kind.MISSING_ROW, state)
    assert desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter()) == 1
    assert now_at(journal, slot).state is state
    assert not published


def test_rows_of_which_nobody_knows_what_they_are_of_are_not_accepted(
    desk: Desk, journal: MemoryJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    found = together(MESSAGE, LostRows(Kind.UNRESOLVED, 5_000, 9), NOW)
    journal.put(found)
    assert desk.decide(ACCEPT, frozenset({text_of(found.slot)}), FindingFilter()) == 1
    assert "once it has read the whole truth" in capsys.readouterr().out


@pytest.mark.parametrize("kind", sorted(ACCEPTABLE))
def test_a_held_class_is_accepted(
    kind: Kind, desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    slot = put(journal, kind, State.REPORTED)
    assert desk.decide(ACCEPT, frozenset({text_of(slot)}), FindingFilter()) == 0
    assert now_at(journal, slot).accepted
    assert len(published) == (kind not in OF_MANY_ROWS)


def test_what_is_systematic_is_no_key_and_waits_for_the_next_sweep(
    desk: Desk,
    journal: MemoryJournal,
    published: Published,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slot = put(journal, Kind.SYSTEMATIC, State.HELD)
    row = put(journal, Kind.CONTENT_LOST, State.REPORTED)
    assert desk.decide(ACCEPT, frozenset({text_of(slot), text_of(row)}), FindingFilter()) == 0
    assert [wake.slot for _, wake in published] == [row]
    told = capsys.readouterr().out.splitlines()
    assert set(told[2:]) == {
        "1 accepted; handed over to the stream by the next sweep: `reconcile sweep`",
        "1 accepted; looked at again one delay from now",
    }
    assert desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter()) == 1
    assert "it is looked at by sweeps" in capsys.readouterr().out
    assert now_at(journal, slot).accepted


@pytest.mark.parametrize("kind", sorted(set(Kind) - ACCEPTABLE))
def test_other_classes_are_refused_with_the_reason(
    kind: Kind,
    desk: Desk,
    journal: MemoryJournal,
    published: Published,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slot = put(journal, kind, State.REPORTED)
    assert desk.decide(ACCEPT, frozenset({text_of(slot)}), FindingFilter()) == 1
    assert not now_at(journal, slot).accepted
    assert not published
    assert f"refused  {mailbox_of(slot)}/7 {kind}: " in capsys.readouterr().out


def test_all_takes_what_matches_and_may_be_decided(
    desk: Desk, journal: MemoryJournal, published: Published
) -> None:
    one = put(journal, Kind.SHADOWED_DELETE, State.REPORTED)
    other = put(journal, Kind.AMBIGUOUS_RANGE_DELETE, State.REPORTED)
    put(journal, Kind.DUPLICATE_UID, State.REPORTED)
    assert desk.decide(ACCEPT, None, FindingFilter(kind="shadowed_delete")) == 0
    assert (now_at(journal, one).accepted, now_at(journal, other).accepted) == (True, False)
    assert desk.decide(ACCEPT, None, FindingFilter(mailbox=mailbox_of(other))) == 0
    assert now_at(journal, other).accepted
    assert len(published) == 2


def test_what_is_not_there_or_filtered_out_is_said(
    desk: Desk, journal: MemoryJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = put(journal, Kind.MISSING_ROW, State.STUCK)
    absent = a_slot(9)
    assert desk.decide(RETRY, frozenset({text_of(slot), text_of(absent)}), FindingFilter()) == 1
    assert now_at(journal, slot).state is State.HELD
    assert f"unknown  {mailbox_of(absent)}/9" in capsys.readouterr().out
    assert desk.decide(RETRY, frozenset({text_of(slot)}), FindingFilter(projection="other")) == 1


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
    assert [json.loads(line) for line in as_json_lines([told])] == [told]


@pytest.mark.parametrize(
    ("sentence", "cell"), [('a, "b"', 'a, "b"'), ("=HYPERLINK(1)", "'=HYPERLINK(1)")]
)
def test_csv_has_a_header_survives_commas_and_quotes_and_is_no_formula(
    sentence: str, cell: str
) -> None:
    finding = a_finding(MESSAGE, a_slot(), sentence=sentence, source=None)
    header, row = csv.reader(io.StringIO("\n".join(as_csv([finding_to_json(finding, MESSAGE)]))))
    told = dict(zip(header, row, strict=True))
    assert told["sentence"] == cell
    assert (told["messageid"], told["uid"]) == ("", "7")
    assert told["found_at"] == "2023-11-14T22:13:20Z"


def test_the_table_has_the_sentence_and_the_place() -> None:
    slot = a_slot()
    where, sentence = as_table([finding_to_json(a_finding(MESSAGE, slot), MESSAGE)])
    assert f"{mailbox_of(slot)}/{uid_of(slot)}" in where
    assert "2 attempts, accepted" in where
    assert sentence.strip().startswith("messages: differs in")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_nothing_and_a_line_of_the_log(name: str) -> None:
    told = {"at": NOW, **finding_to_json(a_finding(MESSAGE, a_slot()), MESSAGE)}
    assert (
        "\n".join(FORMATS[name]([]))
        == {
            "table": "no findings",
            "json": "[]",
            "jsonl": "",
            "csv": "\n".join(as_csv([])),
        }[name]
    )
    text = "\n".join(FORMATS[name]([told]))
    assert ("2027-01-15T08:00:00Z" in text) is (name in {"table", "csv"})


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"topic": "t"}', b"\xff"])
def test_what_is_no_dead_letter_is_told_apart(value: bytes | None) -> None:
    assert place_of(Record("d", 0, 0, None, value)) is None
