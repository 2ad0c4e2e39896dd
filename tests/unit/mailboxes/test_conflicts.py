"""Rows of `mailbox` and `mailboxpathv3` that belong together and differ, by kind."""

from uuid import UUID

import pytest

from reconcilers.mailboxes.conflicts import Conflict, ConflictKind, Merge, conflicts, standing
from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides, Unpaired
from tests.builders.mailboxes import A, B, C, P, Q, R, Row, look, mailbox, path

KINDS: dict[str, tuple[ConflictKind, list[Row]]] = {
    "orphan path": (ConflictKind.ORPHAN_PATH, [path(P, A)]),
    "missing path": (ConflictKind.MISSING_PATH, [mailbox(A, P)]),
    "path mismatch": (ConflictKind.PATH_MISMATCH, [mailbox(A, P), path(Q, A)]),
    "two paths": (ConflictKind.TWO_PATHS, [mailbox(A, P), path(P, A), path(Q, A)]),
    "two paths, none its own": (ConflictKind.TWO_PATHS, [mailbox(A, P), path(Q, A), path(R, A)]),
    "two orphan paths": (ConflictKind.TWO_PATHS, [path(P, A), path(Q, A)]),
    "id mismatch": (ConflictKind.ID_MISMATCH, [mailbox(B, P), path(P, A)]),
    "id mismatch in a chain": (
        ConflictKind.ID_MISMATCH,
        [mailbox(A, P), path(P, B), mailbox(B, R)],
    ),
    "two ids": (ConflictKind.TWO_IDS, [mailbox(A, P), mailbox(B, P), path(P, A)]),
    "two ids of a free path": (ConflictKind.TWO_IDS, [mailbox(A, P), mailbox(B, P)]),
    "swapped": (
        ConflictKind.SWAPPED_PATHS,
        [mailbox(A, Q), mailbox(B, P), path(P, A), path(Q, B)],
    ),
    "swapped in a circle": (
        ConflictKind.SWAPPED_PATHS,
        [mailbox(A, Q), mailbox(B, R), mailbox(C, P), path(P, A), path(Q, B), path(R, C)],
    ),
    "a circle that is open": (
        ConflictKind.ID_MISMATCH,
        [mailbox(A, P), mailbox(B, Q), path(P, B), path(Q, C)],
    ),
    "no path in the mailbox": (ConflictKind.INCOMPLETE_ROW, [mailbox(A, None), path(P, A)]),
    "no id in the path": (ConflictKind.INCOMPLETE_ROW, [mailbox(A, P), path(P, None)]),
}


def only(*rows: Row) -> Conflict:
    (found,) = conflicts(look(rows))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_with_both_sides(name: str) -> None:
    kind, rows = KINDS[name]
    found = only(*rows)
    assert found.kind is kind
    assert {*found.mailboxes, *found.paths} == set(rows)


def test_equal_rows_are_no_conflict_and_stay_out_of_others() -> None:
    right: list[Row] = [mailbox(B, Q), path(Q, B)]
    assert conflicts(look(right)) == []
    assert only(path(P, A), *right).paths == (path(P, A),)


def test_a_row_without_uidvalidity_is_incomplete() -> None:
    assert only(PathRow(P, A, None)).kind is ConflictKind.INCOMPLETE_ROW
    assert only(MailboxRow(A, P, None)).kind is ConflictKind.INCOMPLETE_ROW


def test_conflicts_are_in_the_order_of_their_least_paths() -> None:
    names = [MailboxPath("#private", "ana", f"{number:02}") for number in range(20)]
    found = conflicts(look([path(each, UUID(int=at)) for at, each in enumerate(names)][::-1]))
    assert [each.paths[0].path for each in found] == names


def test_a_look_names_its_keys_and_those_of_its_rows() -> None:
    ids: dict[UUID, MailboxRow | None] = {A: mailbox(A, P), B: mailbox(B, None), C: None}
    named = Sides(ids, {Q: path(Q, A), R: path(R, None)}).named()
    assert named == (frozenset({A, B, C}), frozenset({P, Q, R}))


@pytest.mark.parametrize(
    ("rows", "merges"),
    [
        ([mailbox(A, P), mailbox(B, P), path(P, A)], [Merge(B, A)]),
        ([mailbox(B, P), path(P, A)], [Merge(B, A)]),
        ([mailbox(A, P), mailbox(B, P)], [Merge(A, B), Merge(B, A)]),
        ([mailbox(A, P), mailbox(B, P), path(P, A), path(Q, B)], []),
        ([mailbox(A, Q), mailbox(B, P), path(P, A), path(Q, B)], []),
        ([mailbox(A, P), path(P, B), mailbox(B, R)], []),
        ([mailbox(A, P), mailbox(B, P), path(P, C), mailbox(C, R)], [Merge(A, B), Merge(B, A)]),
        ([mailbox(A, P), path(Q, A)], []),
        ([path(P, A)], []),
    ],
)
def test_the_mailbox_without_a_path_is_merged_into_the_one_that_has_it(
    rows: list[Row], merges: list[Merge]
) -> None:
    assert list(only(*rows).merges) == merges


def test_what_changed_between_two_looks_is_counted_and_not_reported() -> None:
    rows: list[Row] = [mailbox(A, P), path(Q, A), path(R, B)]
    later: list[Row] = [*rows[:2], path(R, B, written=2)]
    found = standing(look(rows), look(later))
    assert [each.kind for each in found.conflicts] == [ConflictKind.PATH_MISMATCH]
    assert found.changed == 1


def test_a_row_that_appeared_between_two_looks_is_a_change() -> None:
    first, second = look([mailbox(A, P)]), look([mailbox(A, P), path(P, A)])
    assert standing(first, second).conflicts == ()
    assert standing(first, second).changed == 1


def test_a_row_that_names_what_was_not_read_is_a_change() -> None:
    first = look([mailbox(A, P)])
    del first.paths[P]  # type: ignore[attr-defined]
    assert standing(first, first).conflicts == ()


def test_of_both_tables_only_rows_without_a_counterpart_are_left_to_read() -> None:
    found = Unpaired()
    for row in (mailbox(A, P), mailbox(B, Q), mailbox(C, None)):
        found.add_mailbox(row)
    for each in (path(P, A), path(R, B)):
        found.add_path(each)
    assert found.ids() == {B, C}
    assert found.paths() == {R}
    assert len(found) == 4  # a pair, a path, its id, and the mailbox that lacks a path
