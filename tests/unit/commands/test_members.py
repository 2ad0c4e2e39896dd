"""``reconcile findings --members``."""

from __future__ import annotations

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.decision import accepted
from reconcilers.sweep.lost_rows import LostRow, LostRows, place_of, together
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Slot
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.arguments.output import FORMATS
from streaming.commands.person.finding_formats import listed
from streaming.commands.person.members import members
from tests.builders.rows import MAILBOX, NOW, OTHER_ID
from tests.fakes.checkpoints.lost_rows import MemoryLostRows
from tests.fakes.checkpoints.memory import MemoryJournal

KEY = text_of(place_of(MESSAGE, Kind.ABSENT_WITHOUT_DELETE))


@pytest.fixture
def journal() -> MemoryJournal:
    made = MemoryJournal(lambda: NOW)
    made.put(together(MESSAGE, LostRows(Kind.ABSENT_WITHOUT_DELETE, 2, 1), NOW))
    return made


@pytest.fixture
def left() -> MemoryLostRows:
    made = MemoryLostRows()
    absent = Kind.ABSENT_WITHOUT_DELETE
    made.keep(
        MESSAGE,
        [
            LostRow(Slot(MAILBOX, 1), absent, NOW, NOW),
            LostRow(Slot(OTHER_ID, 2), absent, NOW + 1, NOW + 1),
            LostRow(Slot(MAILBOX, 3), Kind.AMBIGUOUS_RANGE_DELETE, NOW, NOW),
        ],
    )
    return made


def test_the_rows_of_one_reason_are_listed(journal: MemoryJournal, left: MemoryLostRows) -> None:
    lines = list(members(journal, left, KEY, FindingFilter()))
    assert [(each["uid"], each["kind"]) for each in lines] == [
        (1, "absent_without_delete"),
        (2, "absent_without_delete"),
    ]
    assert not any(each["accepted"] for each in lines)
    of_one = members(journal, left, KEY, FindingFilter(mailbox=MAILBOX))
    assert [each["uid"] for each in of_one] == [1]


def test_those_that_an_acceptance_covers_are_shown_so(
    journal: MemoryJournal, left: MemoryLostRows
) -> None:
    (found,) = journal.open_findings(MESSAGE)
    journal.accept(accepted(found, NOW + 5))
    lines = list(members(journal, left, KEY, FindingFilter()))
    assert [bool(each["accepted"]) for each in lines] == [True, False]


@pytest.mark.parametrize("style", FORMATS)
def test_each_format_shows_them(style: str, journal: MemoryJournal, left: MemoryLostRows) -> None:
    told = "\n".join(listed(style, members(journal, left, KEY, FindingFilter())))
    assert "absent_without_delete" in told


@pytest.mark.parametrize(
    "key", [text_of(Slot(MAILBOX, 1)), text_of(place_of(MESSAGE, Kind.UNRESOLVED))]
)
def test_where_no_such_finding_is_that_is_said(
    key: str, journal: MemoryJournal, left: MemoryLostRows
) -> None:
    with pytest.raises(Misconfigured, match="no open finding there"):
        members(journal, left, key, FindingFilter())
