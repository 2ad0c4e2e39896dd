"""What an offline fix writes, by the kind of conflict and by the side that is right."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconcilers.mailboxes.conflicts import Conflict, ConflictKind, conflicts
from reconcilers.mailboxes.plan import (
    AddMailbox,
    AddPath,
    DeleteMailbox,
    DeletePath,
    Fix,
    Left,
    MailboxWrite,
    RightSide,
    SetMailboxPath,
    SetPathId,
    plan,
    removable,
)
from reconcilers.mailboxes.rows import MailboxPath
from tests.builders.mailboxes import A, B, C, P, Q, R, Row, look, mailbox, path
from tests.fakes.mailbox_tables import MailboxTables

NOTHING = frozenset[UUID]()
EVERYTHING = frozenset({A, B, C})
FIXES: dict[str, tuple[list[Row], list[MailboxWrite | Left], list[MailboxWrite | Left]]] = {
    "orphan path": ([path(P, A)], [AddMailbox(A, P, 101)], [DeletePath(P, A)]),
    "missing path": ([mailbox(A, P)], [DeleteMailbox(A, P)], [AddPath(P, A, 1)]),
    "path mismatch": (
        [mailbox(A, P), path(Q, A)],
        [SetMailboxPath(A, P, Q)],
        [AddPath(P, A, 1), DeletePath(Q, A)],
    ),
    "two paths": (
        [mailbox(A, P), path(P, A), path(Q, A)],
        [Left.TWO_PATHS],
        [DeletePath(Q, A)],
    ),
    "swapped": (
        [mailbox(A, Q), mailbox(B, P), path(P, A), path(Q, B)],
        [SetMailboxPath(A, Q, P), SetMailboxPath(B, P, Q)],
        [SetPathId(P, A, B, 2), SetPathId(Q, B, A, 1)],
    ),
    "id mismatch": (
        [mailbox(B, P), path(P, A)],
        [AddMailbox(A, P, 101), Left.MERGE],
        [Left.MERGE],
    ),
    "two ids": (
        [mailbox(A, P), mailbox(B, P), path(P, A)],
        [Left.MERGE],
        [Left.MERGE],
    ),
    "two ids of a free path": ([mailbox(A, P), mailbox(B, P)], [Left.MERGE], [Left.MERGE]),
    "two ids, both registered": (
        [mailbox(A, P), mailbox(B, P), path(P, A), path(Q, B)],
        [SetMailboxPath(B, P, Q)],
        [Left.TWO_CLAIMS],
    ),
    "incomplete": ([mailbox(A, None), path(P, A)], [Left.INCOMPLETE], [Left.INCOMPLETE]),
}


def only(rows: Sequence[Row]) -> Conflict:
    (found,) = conflicts(look(rows))
    return found


def told(made: Fix) -> list[MailboxWrite | Left]:
    return [*made.writes, *made.left]


@pytest.mark.parametrize("name", FIXES)
def test_the_other_side_follows_the_right_one(name: str) -> None:
    rows, by_path, by_mailbox = FIXES[name]
    assert told(plan(only(rows), RightSide.PATH, NOTHING)) == by_path
    assert told(plan(only(rows), RightSide.MAILBOX, NOTHING)) == by_mailbox


def test_the_words_of_the_report() -> None:
    assert " ".join(RightSide) == "path mailbox none"
    assert " ".join(Left) == (
        "no_side_is_right needs_a_merge two_paths_are_registered two_mailboxes_name_the_path"
        " has_messages incomplete_row"
    )
    assert " ".join(ConflictKind) == (
        "orphan_path missing_path path_mismatch id_mismatch two_paths_of_one_id"
        " two_ids_of_one_path swapped_paths incomplete_row"
    )


@pytest.mark.parametrize("name", FIXES)
def test_without_a_right_side_nothing_is_written(name: str) -> None:
    rows = only(FIXES[name][0])
    left = Left.MERGE if rows.merges else Left.NO_SIDE
    expected = Left.INCOMPLETE if rows.incomplete else left
    assert plan(rows, RightSide.NONE, NOTHING) == Fix(left=(expected,))


def test_no_row_of_a_mailbox_with_messages_is_removed() -> None:
    orphan, unregistered = only([path(P, A)]), only([mailbox(A, P)])
    assert removable(orphan) == removable(unregistered) == {A}
    assert plan(orphan, RightSide.MAILBOX, {A}) == Fix(left=(Left.HAS_MESSAGES,))
    assert plan(unregistered, RightSide.PATH, {A}) == Fix(left=(Left.HAS_MESSAGES,))


def test_a_mailbox_with_both_rows_need_not_be_asked_for_messages() -> None:
    assert removable(only([mailbox(A, P), path(Q, A)])) == NOTHING


@pytest.mark.parametrize("right", [RightSide.PATH, RightSide.MAILBOX])
def test_the_writes_of_every_run_are_in_the_order_of_their_keys(right: RightSide) -> None:
    """A dry run and the fix after it are two processes, whose sets differ in order."""
    ids = [UUID(int=number * 7_919_000_003) for number in range(1, 21)]
    places = [MailboxPath("#private", "ana", f"{number:02}") for number in range(20)]
    swapped = only(
        [
            *(mailbox(id_, places[at - 1]) for at, id_ in enumerate(ids)),
            *(path(places[at], id_) for at, id_ in enumerate(ids)),
        ]
    )
    writes = plan(swapped, right, NOTHING).writes
    assert len(writes) == 20
    if right is RightSide.PATH:
        assert [each.id for each in writes if isinstance(each, SetMailboxPath)] == ids
    else:
        assert [each.path for each in writes if isinstance(each, SetPathId)] == places


# --- Random rows: the right side, the limits, and a fix that is killed ---------------------------

IDS, PLACES = st.sampled_from((A, B, C)), st.sampled_from((P, Q, R))
MAILBOXES = st.dictionaries(IDS, PLACES, max_size=3)
PATHS = st.dictionaries(PLACES, IDS, max_size=3)
RIGHTS = st.sampled_from((RightSide.PATH, RightSide.MAILBOX))
WITH_MESSAGES = st.frozensets(IDS)


def tables_of(mailboxes: dict[UUID, MailboxPath], paths: dict[MailboxPath, UUID]) -> MailboxTables:
    rows: list[Row] = [mailbox(*each) for each in mailboxes.items()]
    return MailboxTables.of([*rows, *(path(*each) for each in paths.items())])


def pairs(tables: MailboxTables) -> tuple[dict[UUID, object], dict[MailboxPath, object]]:
    """The rows without what they store besides."""
    return (
        {row.id: row.path for row in tables.mailboxes()},
        {row.path: row.id for row in tables.paths()},
    )


def found_in(tables: MailboxTables) -> list[Conflict]:
    return conflicts(look([*tables.mailboxes(), *tables.paths()]))


def writes_of(
    tables: MailboxTables, right: RightSide, with_messages: frozenset[UUID]
) -> list[MailboxWrite]:
    return [
        sent
        for each in found_in(tables)
        for sent in plan(each, right, with_messages & removable(each)).writes
    ]


def fixed(tables: MailboxTables, right: RightSide, with_messages: frozenset[UUID]) -> MailboxTables:
    """The end of fixes that are repeated until nothing is left to write."""
    for _ in range(10):
        writes = writes_of(tables, right, with_messages)
        if not writes:
            return tables
        assert all(list(map(tables.send, writes)))
    raise AssertionError("it does not end")


@given(MAILBOXES, PATHS, RIGHTS, WITH_MESSAGES, st.integers(0, 6))
def test_a_fix_that_is_killed_and_repeated_ends_in_the_same_state(
    mailboxes: dict[UUID, MailboxPath],
    paths: dict[MailboxPath, UUID],
    right: RightSide,
    with_messages: frozenset[UUID],
    killed_after: int,
) -> None:
    killed = tables_of(mailboxes, paths)
    for each in writes_of(killed, right, with_messages)[:killed_after]:
        assert killed.send(each)
    whole = pairs(fixed(tables_of(mailboxes, paths), right, with_messages))
    assert pairs(fixed(killed, right, with_messages)) == whole
    same = 1 if right is RightSide.PATH else 0
    assert whole[same] == (mailboxes, paths)[same], "the right side was written"


@given(MAILBOXES, PATHS, RIGHTS, WITH_MESSAGES)
@example({A: P, B: R, C: R}, {P: B}, RightSide.MAILBOX, frozenset())
@example({A: R, C: R, B: P}, {Q: B, P: A}, RightSide.MAILBOX, frozenset())
def test_no_mailbox_loses_its_last_row_while_it_has_messages(
    mailboxes: dict[UUID, MailboxPath],
    paths: dict[MailboxPath, UUID],
    right: RightSide,
    with_messages: frozenset[UUID],
) -> None:
    tables = tables_of(mailboxes, paths)
    reachable = {*paths.values()} & {*mailboxes}
    for each in writes_of(tables, right, with_messages):
        assert tables.send(each)
        by_id, by_path = pairs(tables)
        assert with_messages & {*mailboxes, *paths.values()} <= {*by_id, *by_path.values()}
    by_id, by_path = pairs(tables)
    assert reachable <= {*by_path.values()} & {*by_id}


@given(MAILBOXES, PATHS, RIGHTS, WITH_MESSAGES)
def test_what_is_left_after_a_fix_has_a_reason(
    mailboxes: dict[UUID, MailboxPath],
    paths: dict[MailboxPath, UUID],
    right: RightSide,
    with_messages: frozenset[UUID],
) -> None:
    after = fixed(tables_of(mailboxes, paths), right, with_messages)
    for each in found_in(after):
        assert plan(each, right, with_messages & removable(each)).left


@given(MAILBOXES, PATHS, RIGHTS, WITH_MESSAGES)
def test_two_ids_that_compete_for_a_path_are_never_decided(
    mailboxes: dict[UUID, MailboxPath],
    paths: dict[MailboxPath, UUID],
    right: RightSide,
    with_messages: frozenset[UUID],
) -> None:
    for each in found_in(tables_of(mailboxes, paths)):
        origins = {merge.origin for merge in each.merges}
        for sent in plan(each, right, with_messages & removable(each)).writes:
            assert not isinstance(sent, DeleteMailbox | SetMailboxPath) or sent.id not in origins
            assert not isinstance(sent, SetPathId | AddPath) or sent.id not in origins
