"""The index tables: what is wrong in them, what may be judged, and how they are chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Projection, keeping
from reconcilers.rows.compare import compare
from reconcilers.rows.confirm import judge
from reconcilers.rows.memory import Memory
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Consistent,
    Difference,
    Kind,
    LookAgain,
    Repair,
    Report,
    Row,
    Verdict,
)
from tests.builders.indexes import (
    APPLICABLE,
    DELETED,
    FLAG,
    INDEXED,
    KEY_ONLY_INDEXES,
    LISTS,
    RECENT,
    THERE,
    UNSEEN,
    belonging,
    elsewhere,
    gathered,
    listed,
    unlisted,
)
from tests.builders.rows import LONG_AGO, MOMENT, NOW, SECOND, truth
from tests.builders.slots import slots

by_key = pytest.mark.parametrize("index", KEY_ONLY_INDEXES, ids=lambda index: index.name)


def kind(index: Projection, seen: Seen) -> Kind | None:
    found = compare(INDEXED, index, seen)
    return found.kind if found is not None else None


def verdict(index: Projection, seen: Seen) -> Verdict:
    return judge(INDEXED, index, seen, MOMENT)


# --- what is wrong -------------------------------------------------------------------------------


@by_key
def test_an_index_that_holds_what_belongs_and_nothing_else_agrees(index: Projection) -> None:
    assert kind(index, listed(THERE, belonging(index))) is None
    assert kind(index, listed(None, elsewhere(index))) is None
    assert kind(index, unlisted(None)) is None


@by_key
def test_a_message_that_belongs_is_missing(index: Projection) -> None:
    assert kind(index, listed(None, belonging(index))) is Kind.MISSING_ROW


@by_key
def test_a_message_whose_flag_was_cleared_is_extra(index: Projection) -> None:
    assert kind(index, listed(THERE, elsewhere(index))) is Kind.EXTRA_ROW


@by_key
def test_a_message_that_is_gone_on_both_sides_is_extra(index: Projection) -> None:
    assert kind(index, unlisted(THERE)) is Kind.EXTRA_ROW


def test_a_flag_that_is_null_is_one_that_is_not_set() -> None:
    assert kind(UNSEEN, listed(None, truth(flagseen=None))) is Kind.MISSING_ROW
    assert kind(DELETED, listed(THERE, truth(flagdeleted=None))) is Kind.EXTRA_ROW
    assert kind(RECENT, listed(THERE, truth(flagrecent=None))) is Kind.EXTRA_ROW


@by_key
def test_an_index_goes_by_its_own_flag_only(index: Projection) -> None:
    others = [column for name, (column, _, _) in FLAG.items() if name != index.name]
    for column in others:
        changed = Row({**belonging(index).cells, column: None})
        assert kind(index, listed(THERE, changed)) is None


# --- what is not said yet ------------------------------------------------------------------------


@by_key
@pytest.mark.parametrize("actual", [None, THERE], ids=["absent", "there"])
def test_nothing_is_said_while_truth_and_list_disagree(
    index: Projection, actual: Row | None
) -> None:
    for each in (belonging(index), elsewhere(index)):
        assert kind(index, unlisted(actual, each)) is None
    assert kind(index, listed(actual)) is None


@by_key
@pytest.mark.parametrize("actual", [None, THERE], ids=["absent", "there"])
def test_nothing_is_said_of_an_incomplete_truth_row(index: Projection, actual: Row | None) -> None:
    for each in (belonging(index), elsewhere(index)):
        incomplete = Row({**each.cells, "internaldate": None}, each.written)
        assert kind(index, listed(actual, incomplete)) is None


def test_no_flags_are_gathered_while_truth_and_list_disagree() -> None:
    assert kind(APPLICABLE, unlisted(None, truth())) is None
    assert kind(APPLICABLE, listed(None, truth(headercontent=None))) is None


# --- applicable flags ----------------------------------------------------------------------------


def test_a_flag_in_use_that_a_mailbox_lacks_is_missing() -> None:
    expected = Difference(Kind.DIFFERING_CELLS, ("userflags",))
    for actual in (None, gathered(), gathered("stale")):
        assert compare(INDEXED, APPLICABLE, listed(actual, truth())) == expected


def test_a_flag_that_no_message_has_any_more_stays_applicable() -> None:
    assert kind(APPLICABLE, listed(gathered("work", "stale"), truth())) is None
    assert kind(APPLICABLE, listed(gathered("work"), truth(userflags=frozenset()))) is None
    assert kind(APPLICABLE, unlisted(gathered("work"))) is None


def test_a_message_without_flags_needs_no_row_of_its_mailbox() -> None:
    assert kind(APPLICABLE, listed(None, truth(userflags=frozenset()))) is None


# --- what may be judged --------------------------------------------------------------------------


@by_key
def test_what_the_truth_tells_is_repaired_at_once(index: Projection) -> None:
    missing = verdict(index, listed(None, belonging(index)))
    assert isinstance(missing, Repair)
    assert missing.sentence.startswith(f"{index.name}: mailbox")
    cleared = verdict(index, listed(THERE, elsewhere(index)))
    assert isinstance(cleared, Repair)
    assert cleared.sentence.endswith("is for a message that has no place here")


@by_key
def test_a_message_that_is_gone_is_judged_only_when_its_absence_is_settled(
    index: Projection,
) -> None:
    first = unlisted(THERE)
    assert isinstance(verdict(index, first), LookAgain)
    settled = verdict(index, unlisted(THERE, suspected=Kind.EXTRA_ROW))
    assert isinstance(settled, Repair)
    assert settled.sentence.endswith("is for a message that is gone")
    heard = replace(first, memory=Memory(range_deletes=frozenset({LONG_AGO})))
    assert isinstance(verdict(index, heard), Repair)


@by_key
def test_a_gone_message_that_nobody_knows_is_unresolved(index: Projection) -> None:
    unknown = replace(unlisted(THERE, suspected=Kind.EXTRA_ROW), consulted=frozenset())
    answer = verdict(index, unknown)
    assert isinstance(answer, Report)
    assert answer.kind is Kind.UNRESOLVED


@by_key
def test_what_nobody_knows_goes_where_the_whole_truth_is_remembered(index: Projection) -> None:
    unknown = replace(unlisted(THERE, suspected=Kind.EXTRA_ROW), consulted=frozenset(), swept=True)
    answer = verdict(index, unknown)
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory
    assert isinstance(verdict(index, replace(unknown, suspected=None)), LookAgain)


@by_key
def test_a_flag_that_changed_within_the_delay_is_looked_at_again(index: Projection) -> None:
    for actual, each in ((None, belonging), (THERE, elsewhere)):
        assert isinstance(verdict(index, listed(actual, each(index, NOW - SECOND))), LookAgain)


def test_an_index_is_never_asked_for_evidence_of_a_removal() -> None:
    """Its row says nothing that a user could lose: it follows the list."""
    memory = Memory(slots(7, 8), range_deletes=frozenset({LONG_AGO}))
    gone = replace(unlisted(THERE, suspected=Kind.EXTRA_ROW), memory=memory)
    assert isinstance(verdict(DELETED, gone), Repair)


@by_key
def test_a_delete_near_its_message_leaves_no_index_without_its_row(index: Projection) -> None:
    """Whether its user deleted the message is asked of the list: it is there."""
    near = Memory(range_deletes=frozenset({LONG_AGO}))
    missing = replace(listed(None, belonging(index)), memory=near)
    assert isinstance(verdict(index, missing), Repair)


def test_agreement_is_consistent() -> None:
    assert verdict(APPLICABLE, listed(gathered("work"), truth())) == Consistent()


# --- which are kept ------------------------------------------------------------------------------


def test_the_list_of_messages_is_always_kept() -> None:
    family = keeping(MESSAGE, ())
    assert [each.name for each in family.projections] == ["messages"]
    assert family.wakes_on == ("imapuidtable", "messageidtable")


def test_the_indexes_that_are_named_are_kept_in_their_order_and_wake() -> None:
    family = keeping(MESSAGE, ("recent_uids", "deleted_uids"))
    assert [each.name for each in family.projections] == ["messages", "deleted_uids", "recent_uids"]
    own = ("messagedeleted", "mailboxrecents")
    assert family.wakes_on == ("imapuidtable", "messageidtable", *own)


def test_a_row_that_gathers_is_kept_and_is_no_wake() -> None:
    family = keeping(MESSAGE, ("applicable_flags", "unseen_uids"))
    assert [each.name for each in family.projections] == [
        "messages",
        "unseen_uids",
        "applicable_flags",
    ]
    assert family.wakes_on == ("imapuidtable", "messageidtable", "firstunseen")


def test_all_but_the_first_are_indexes() -> None:
    assert not LISTS.is_index
    assert all(index.is_index for index in (*KEY_ONLY_INDEXES, APPLICABLE))
    assert all(index.columns == () for index in KEY_ONLY_INDEXES)
    assert (APPLICABLE.columns, APPLICABLE.sets) == (("userflags",), frozenset({"userflags"}))
