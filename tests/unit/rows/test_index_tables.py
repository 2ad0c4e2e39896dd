"""The index tables: what is wrong in them, what is judged and written, how they are chosen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from checkpoints import codec
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Projection, keeping
from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, Write
from reconcilers.rows.compare import compare
from reconcilers.rows.confirm import judge
from reconcilers.rows.memory import Memory
from reconcilers.rows.plan import plan
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import Misconfigured
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
from tests.builders.rows import DELAY, LONG_AGO, MOMENT, NOW, SECOND, SLOT, truth
from tests.builders.slots import slots

SETTLED = NOW - DELAY
by_key = pytest.mark.parametrize("index", KEY_ONLY_INDEXES, ids=lambda index: index.name)
any_attempt = pytest.mark.parametrize("attempt", [0, 1])


def kind(index: Projection, seen: Seen) -> Kind | None:
    found = compare(INDEXED, index, seen)
    return found.kind if found is not None else None


def verdict(index: Projection, seen: Seen) -> Verdict:
    return judge(INDEXED, index, seen, MOMENT)


def planned(index: Projection, seen: Seen, kind: Kind, attempt: int = 0) -> tuple[Write, ...]:
    answer = plan(index, seen, Difference(kind, ("userflags",)), MOMENT, attempt)
    assert not isinstance(answer, Report)
    return answer


# --- what is wrong -------------------------------------------------------------------------------


@by_key
def test_an_index_that_holds_what_belongs_and_nothing_else_agrees(index: Projection) -> None:
    assert kind(index, listed(THERE, belonging(index))) is None
    assert kind(index, listed(None, elsewhere(index))) is None
    assert kind(index, unlisted(None)) is None


@by_key
def test_what_differs_in_an_index(index: Projection) -> None:
    assert kind(index, listed(None, belonging(index))) is Kind.MISSING_ROW
    assert kind(index, listed(THERE, elsewhere(index))) is Kind.EXTRA_ROW  # its flag was cleared
    assert kind(index, unlisted(THERE)) is Kind.EXTRA_ROW  # gone on both sides


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
def test_nothing_is_said_while_truth_and_list_disagree_or_a_truth_row_is_incomplete(
    index: Projection, actual: Row | None
) -> None:
    for each in (belonging(index), elsewhere(index)):
        assert kind(index, unlisted(actual, each)) is None
        incomplete = Row({**each.cells, "internaldate": None}, each.written)
        assert kind(index, listed(actual, incomplete)) is None
    assert kind(index, listed(actual)) is None


def test_no_flags_are_gathered_while_truth_and_list_disagree() -> None:
    assert kind(APPLICABLE, unlisted(None, truth())) is None
    assert kind(APPLICABLE, listed(None, truth(headercontent=None))) is None


# --- applicable flags ----------------------------------------------------------------------------


def test_a_flag_in_use_that_a_mailbox_lacks_is_missing() -> None:
    expected = Difference(Kind.DIFFERING_CELLS, ("userflags",))
    for actual in (None, gathered(), gathered("stale")):
        assert compare(INDEXED, APPLICABLE, listed(actual, truth())) == expected


def test_a_flag_that_no_message_has_any_more_stays_applicable() -> None:
    assert verdict(APPLICABLE, listed(gathered("work"), truth())) == Consistent()
    assert kind(APPLICABLE, listed(gathered("work", "stale"), truth())) is None
    assert kind(APPLICABLE, listed(gathered("work"), truth(userflags=frozenset()))) is None
    assert kind(APPLICABLE, unlisted(gathered("work"))) is None
    assert kind(APPLICABLE, listed(None, truth(userflags=frozenset()))) is None  # none is needed


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
def test_what_nobody_knows_goes_where_the_whole_truth_is_remembered(index: Projection) -> None:
    unknown = replace(unlisted(THERE, suspected=Kind.EXTRA_ROW), consulted=frozenset())
    unresolved = verdict(index, unknown)
    assert isinstance(unresolved, Report)
    assert unresolved.kind is Kind.UNRESOLVED
    swept = replace(unknown, swept=True)
    answer = verdict(index, swept)
    assert isinstance(answer, Repair)
    assert answer.rests_on_memory
    assert isinstance(verdict(index, replace(swept, suspected=None)), LookAgain)


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


# --- plan ----------------------------------------------------------------------------------------


@by_key
@any_attempt
def test_a_row_is_added_or_deleted_older_than_what_may_still_arrive(
    index: Projection, attempt: int
) -> None:
    writes = planned(index, listed(None, belonging(index)), Kind.MISSING_ROW, attempt)
    assert writes == (AddRow(index, SLOT, SETTLED),)
    expected = (DeleteRow(index, SLOT, SETTLED),)
    cleared = listed(THERE, elsewhere(index))
    assert planned(index, cleared, Kind.EXTRA_ROW, attempt) == expected
    assert planned(index, unlisted(THERE), Kind.EXTRA_ROW, attempt) == expected


@any_attempt
def test_only_the_flags_that_a_mailbox_lacks_are_added(attempt: int) -> None:
    seen = listed(gathered("work", "stale"), truth(userflags=frozenset({"work", "new"})))
    writes = planned(APPLICABLE, seen, Kind.DIFFERING_CELLS, attempt)
    assert writes == (AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", frozenset({"new"})),)


def test_a_mailbox_without_a_row_gets_all_flags_of_the_message() -> None:
    flags = frozenset({"work", "new"})
    writes = planned(APPLICABLE, listed(None, truth(userflags=flags)), Kind.DIFFERING_CELLS)
    assert writes == (AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", flags),)


# --- the journal ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        *(AddRow(index, SLOT, SETTLED) for index in KEY_ONLY_INDEXES),
        DeleteRow(RECENT, SLOT, SETTLED),
        AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", frozenset({"new"})),
    ],
    ids=lambda write: f"{type(write).__name__} {write.projection.name}",
)
def test_a_write_to_an_index_comes_back_from_the_journal(write: Write) -> None:
    stored = json.loads(codec.text_of(codec.write_to_json(write, INDEXED)))
    assert codec.write_from_json(stored, INDEXED) == write


def test_a_write_to_an_index_that_is_no_longer_kept_is_refused() -> None:
    stored = codec.write_to_json(AddRow(RECENT, SLOT, SETTLED), INDEXED)
    with pytest.raises(Misconfigured, match="recent_uids"):
        codec.write_from_json(stored, keeping(MESSAGE, ("deleted_uids",)))


# --- which are kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "kept", "woken_by"),
    [
        ((), (), ()),
        (
            ("recent_uids", "deleted_uids"),
            ("deleted_uids", "recent_uids"),
            ("messagedeleted", "mailboxrecents"),
        ),
        # a row that gathers is no wake
        (
            ("applicable_flags", "unseen_uids"),
            ("unseen_uids", "applicable_flags"),
            ("firstunseen", "applicableflag"),
        ),
    ],
    ids=["the list always", "those that are named, in their order", "a row that gathers"],
)
def test_which_projections_are_kept_and_wake(
    named: tuple[str, ...], kept: tuple[str, ...], woken_by: tuple[str, ...]
) -> None:
    family = keeping(MESSAGE, named)
    assert [each.name for each in family.projections] == ["messages", *kept]
    assert family.wakes_on == ("imapuidtable", "messageidtable", *woken_by)


def test_all_but_the_first_are_indexes() -> None:
    assert not LISTS.is_index
    assert all(index.is_index for index in (*KEY_ONLY_INDEXES, APPLICABLE))
    assert all(index.columns == () for index in KEY_ONLY_INDEXES)
    assert (APPLICABLE.columns, APPLICABLE.sets) == (("userflags",), frozenset({"userflags"}))
