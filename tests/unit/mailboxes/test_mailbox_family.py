"""The family of mailbox objects: what each look finds, that it is held, and never written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.family import Family
from reconcilers.declared.mailbox_names import MAILBOX_NAMES, of_mailbox
from reconcilers.declared.projections.mailbox_paths import MAILBOX_PATHS
from reconcilers.declared.projections.messages import MESSAGES
from reconcilers.declared.writes import DeleteRow
from reconcilers.rows.finding import State
from reconcilers.words.errors import Misconfigured, NotGuarded
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Wake
from reconcilers.words.waiting import Wait
from streaming.settings import Settings
from streaming.steps.confirmed_suspect import with_sources
from tests.builders.found import suspect_at
from tests.builders.mailbox_family import (
    MAILBOXES,
    NAMESPACE,
    PATHS,
    USER,
    A,
    B,
    C,
    place,
    registered,
    stored,
)
from tests.builders.rights_ground import Ground
from tests.builders.rows import LONG_AGO, NOW, SECOND

Named = Mapping[UUID, str]
P, Q = place("P"), place("Q")


def ground(mailboxes: Named, paths: Mapping[str, UUID | None], at: Micros = LONG_AGO) -> Ground:
    truths: dict[KeyValue, tuple[Row, ...]] = {
        each: (stored(name, at),) for each, name in mailboxes.items()
    }
    rows = {place(name): registered(name, each, at) for name, each in paths.items()}
    return Ground(truths, rows, family=MAILBOXES)


def of_mailbox_row(mailbox: UUID) -> Wake:
    return Wake((None, None, None), mailbox, LONG_AGO, from_truth=True)


def of_path_row(slot: Slot, mailbox: UUID | None) -> Wake:
    return Wake(slot.key, mailbox, LONG_AGO)


# --- the truth -----------------------------------------------------------------------------------


def test_a_mailbox_is_one_truth_row_with_the_path_that_it_names() -> None:
    (row,) = MAILBOX_NAMES.rows_of(A, [stored("INBOX", 7)])
    assert MAILBOX_NAMES.slot_of(row) == place("INBOX")
    assert (row.get("id"), row.get("mailboxid"), row.newest) == (A, A, 7)


@pytest.mark.parametrize(
    "row",
    [
        stored(None),
        stored("", base="{}"),
        stored("INBOX", base="null"),
        stored("INBOX", base='{"namespace": null, "user": "ana"}'),
        Row({"mailboxbase": None, "name": "INBOX"}),
    ],
)
def test_a_row_that_lacks_a_part_of_its_path_names_none(row: Row) -> None:
    assert of_mailbox(A, [row]) == ()


def test_a_mailbox_without_a_user_has_an_empty_one() -> None:
    (row,) = MAILBOX_NAMES.rows_of(A, [stored("team", base='{"namespace": "#t", "user": null}')])
    assert MAILBOX_NAMES.slot_of(row) == Slot("", "#t", "team")


# --- what is found -------------------------------------------------------------------------------

CASES: dict[str, tuple[Named, Mapping[str, UUID | None], Wake, Kind, str]] = {
    "an orphan path": ({}, {"P": A}, of_path_row(P, A), Kind.EXTRA_ROW, f"{A}, which does not"),
    "a path without an id": (
        {},
        {"P": None},
        of_path_row(P, None),
        Kind.EXTRA_ROW,
        "for no mailbox",
    ),
    "a missing path": ({A: "P"}, {}, of_mailbox_row(A), Kind.MISSING_ROW, f"mailbox {A} names it"),
    "a path of a mailbox that names another": (
        *({A: "Q"}, {"P": A}, of_path_row(P, A)),
        *(Kind.EXTRA_ROW, f"{A}, which names another path"),
    ),
    "an id mismatch": (
        *({B: "P"}, {"P": A}, of_mailbox_row(B)),
        *(Kind.DIFFERING_CELLS, f"registered for mailbox {A}, and mailbox {B} names it"),
    ),
    "two ids of one path": (
        *({A: "P", B: "P"}, {"P": A}, of_mailbox_row(B)),
        *(Kind.DUPLICATE_UID, f"is {A}'s, and mailboxes {A}, {B} name it"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_conflict_is_held_for_its_command_and_not_written(case: str) -> None:
    mailboxes, paths, wake, kind, told = CASES[case]
    scene = ground(mailboxes, paths)
    scene.converge(wake)
    found = scene.finding
    assert (found.kind, found.slot) == (kind, P)
    assert told in found.sentence
    assert (found.state, found.wait) == (State.HELD, Wait.COMMAND)
    assert "`reconcile mailboxes`" in found.told
    assert scene.rows == ground(mailboxes, paths).rows


def test_swapped_paths_are_a_finding_at_each() -> None:
    scene = ground({A: "P", B: "Q"}, {"P": B, "Q": A})
    scene.converge(of_mailbox_row(A), of_mailbox_row(B))
    found = list(scene.journal.open_findings(MAILBOXES))
    assert {each.slot for each in found} == {P, Q}
    assert {each.kind for each in found} == {Kind.DIFFERING_CELLS}


@pytest.mark.parametrize("wake", [of_mailbox_row(A), of_path_row(P, A), of_path_row(P, None)])
def test_what_agrees_is_no_suspect(wake: Wake) -> None:
    assert ground({A: "P"}, {"P": A}).look(wake).suspects == ()


@pytest.mark.parametrize("case", ["an orphan path", "a missing path"])
def test_an_absence_is_found_by_two_looks_before_it_is_told(case: str) -> None:
    mailboxes, paths, wake, kind, _ = CASES[case]
    scene = ground(mailboxes, paths)
    (suspect,) = scene.look(wake).suspects
    scene.settle(suspect)
    assert list(scene.journal.open_findings(MAILBOXES)) == []
    assert [each.suspected for each in scene.published] == [kind]


def test_what_was_just_written_is_not_told() -> None:
    scene = ground({A: "Q"}, {"P": B, "Q": A}, at=NOW)
    (suspect,) = scene.look(of_path_row(P, B)).suspects
    scene.settle(suspect, after=SECOND)
    assert list(scene.journal.open_findings(MAILBOXES)) == []


def test_two_ids_are_found_though_one_was_just_written() -> None:
    """The look that comes one delay later names the path, which has the id of one of them."""
    scene = ground({A: "P", B: "P"}, {"P": A}, at=NOW)
    (suspect,) = scene.look(of_mailbox_row(B)).suspects
    scene.settle(suspect, after=SECOND)
    assert {each.source for each in scene.published} == {A, B}
    waiting, scene.published[:] = list(scene.published), []
    scene.converge(*waiting)
    assert scene.finding.kind is Kind.DUPLICATE_UID


# --- how it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["a missing path", "two ids of one path", "an id mismatch"])
def test_a_finding_stays_while_neither_side_changes(case: str) -> None:
    """Its own look names the path alone: the ids that its rows do not name come from it."""
    mailboxes, paths, wake, kind, told = CASES[case]
    scene = ground(mailboxes, paths)
    scene.converge(wake)
    before = scene.finding
    scene.converge(Wake(P.key, None, looked_again=True, projection=PATHS.name))
    assert (scene.finding.kind, scene.finding.found_at) == (kind, before.found_at)
    assert told in scene.finding.sentence


def test_a_finding_ends_once_both_sides_agree() -> None:
    scene = ground({A: "P", B: "P"}, {"P": A})
    scene.converge(of_mailbox_row(B))
    del scene.truths[B]
    scene.converge(Wake(P.key, None, looked_again=True, projection=PATHS.name))
    assert list(scene.journal.open_findings(MAILBOXES)) == []


def test_a_suspect_without_a_finding_keeps_its_sources() -> None:
    suspect = suspect_at(P, sources=[A])
    assert with_sources(MAILBOXES, suspect, {}) == suspect


# --- promise 1 -----------------------------------------------------------------------------------


def test_no_write_to_it_can_be_built() -> None:
    with pytest.raises(NotGuarded, match="mailboxpathv3"):
        DeleteRow(PATHS, P, NOW)
    elsewhere = replace(MESSAGES, only_by="a command")
    with pytest.raises(NotGuarded, match="messageidtable"):
        DeleteRow(elsewhere, Slot(A, 1), NOW)


def test_without_its_command_it_cannot_be_declared() -> None:
    with pytest.raises(NotGuarded, match="mailbox_paths"):
        replace(MAILBOX_PATHS, only_by="")
    with pytest.raises(Misconfigured, match="needs lineage"):
        replace_listing(MAILBOXES)


def replace_listing(family: Family) -> Family:
    """The family with a listing that the stream would repair."""
    return replace(family, projections=(replace(PATHS, table="elsewhere", only_by=""),))


def test_nothing_of_it_is_written() -> None:
    assert MAILBOXES.written == ()
    assert MAILBOXES.names == ("mailbox_paths",)


def test_it_is_off_by_default() -> None:
    def names(settings: Settings) -> list[str]:
        return [each.name for each in settings.families()]

    assert "mailbox" not in names(Settings())
    assert "mailbox" in names(Settings.model_validate({"mailboxes": {"watch": True}}))


def test_a_place_is_named_as_operators_type_it() -> None:
    assert MAILBOXES.place(P) == f"user {USER} namespace {NAMESPACE} path P"
    assert C not in MAILBOXES.named_by(P)
