"""The rights in a mailbox, derived from events or from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.access_rights import (
    EVENTS,
    JSON_LISTS,
    LETTERS,
    LIST_ROWS,
    LONGEST_NAME,
    NOBODY,
    has_letters,
    has_rights,
)
from reconcilers.declared.families.rights import rights_from
from reconcilers.declared.truth import TruthTable
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue, Micros, Row, Value
from tests.builders.rights import EVE, SHARED, event, stored_event
from tests.builders.rows import LONG_AGO

Lists = Mapping[str, str]
ANA, BEN = "ana@example.org", "ben"
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
lists = st.dictionaries(names, st.text("".join(sorted(LETTERS)), max_size=5), max_size=4)


def derived(*events: Row) -> dict[Value, Value]:
    """The letters by name, after the events."""
    rows = EVENTS.rows_of(SHARED, events)
    return {row.get("key"): row.get("rights") for row in rows}


def why(truth: TruthTable, row: Row, *others: Row) -> str:
    """Why the partition with these rows cannot be understood."""
    with pytest.raises(MalformedContent) as raised:
        truth.rows_of(SHARED, [*others, row])
    return str(raised.value)


# --- the event store -----------------------------------------------------------------------------


def test_the_newest_list_is_the_whole_list() -> None:
    first = stored_event(0, {}, {ANA: "lr"})
    second = stored_event(1, {ANA: "lr"}, {ANA: "lr", BEN: "lrstw"})
    for some in permutations((first, second)):
        assert derived(*some) == {ANA: frozenset("lr"), BEN: frozenset("lrstw")}


def test_who_was_ever_named_is_compared() -> None:
    """Also who is only in a list before the first event."""
    rows = [stored_event(4, {EVE: "a", ANA: "l"}, {BEN: "r"}), stored_event(5, {BEN: "r"}, {})]
    assert derived(*rows) == dict.fromkeys([EVE, ANA, BEN], frozenset())


@given(st.lists(lists, min_size=1, max_size=4))
def test_each_name_of_any_list_has_one_row_with_its_newest_rights(history: list[Lists]) -> None:
    pairs = zip([{}, *history], history, strict=False)
    events = [stored_event(number, *both) for number, both in enumerate(pairs)]
    named = {name for each in history for name in each} or {*NOBODY}
    assert derived(*events) == {name: frozenset(history[-1].get(name, "")) for name in named}


def test_events_of_another_type_are_left_out() -> None:
    other = Row({"aggregateid": SHARED, "eventid": 9, "event": json.dumps({"type": "filters"})})
    assert derived(stored_event(0, {}, {ANA: "l"}), other) == {ANA: frozenset("l")}
    assert derived(other) == {}
    assert derived() == {}


def test_a_partition_may_have_a_snapshot_alone() -> None:
    assert derived(Row({"aggregateid": SHARED, "eventid": None, "event": None})) == {}


@pytest.mark.parametrize("at", [LONG_AGO, None])
def test_a_truth_row_was_written_when_the_newest_event_was(at: Micros | None) -> None:
    rows = [stored_event(0, {}, {BEN: "l"}, LONG_AGO - 5), stored_event(1, {}, {ANA: "l"}, at)]
    found = EVENTS.rows_of(SHARED, rows)
    assert [dict(row.written) for row in found] == [{} if at is None else {"rights": at}] * 2
    assert EVENTS.slot_of(found[0]).key == (ANA, SHARED)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not a JSON object"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ('{"type": "acl-updated"}', "no aclDiff"),
        (event(0, {}, {}).replace("newAcl", "new"), "no entries"),
        (event(0, {}, {}).replace("entries", "rows"), "no entries"),
        (event(0, {}, {ANA: "lr"}).replace('"lr"', "5"), "rights are not text"),
        (event(0, {}, {ANA: "l%"}), "unknown rights '%'"),
        (event(0, {}, {"": "l"}), "a name has 0 bytes"),
        (event(0, {}, {"ü" * (LONGEST_NAME // 2 + 1): "l"}), "a name has 65536 bytes"),
        (event(0, {}, {"\ud800": "l"}), "a name is not text"),
    ],
)
def test_what_james_could_not_load_is_malformed_as_a_whole(text: str | None, reason: str) -> None:
    bad = Row({"aggregateid": SHARED, "eventid": 3, "event": text})
    found = why(EVENTS, bad, stored_event(4, {}, {BEN: "l"}))
    assert found.startswith(f"eventstore: event 3 of {SHARED}: ")
    assert reason in found


def test_obsolete_letters_are_those_that_james_reads() -> None:
    assert derived(stored_event(0, {}, {ANA: "cl", BEN: "d"})) == {
        ANA: frozenset("klx"),
        BEN: frozenset("etx"),
    }


# --- JSON in one cell ----------------------------------------------------------------------------


@given(lists)
def test_a_list_in_one_cell(rights: Lists) -> None:
    """An empty one has been read all the same: a row of NOBODY says so, and belongs nowhere."""
    row = Row({"id": SHARED, "acl": json.dumps({"entries": rights})}, {"acl": 7})
    found = JSON_LISTS.rows_of(SHARED, [row])
    assert {row.get("key"): row.get("rights") for row in found} == {
        name: frozenset(letters) for name, letters in (rights or dict.fromkeys(NOBODY, "")).items()
    }
    assert all(dict(row.written) == {"rights": 7} for row in found)
    assert {JSON_LISTS.slot_of(row).key for row in found} == {
        (name, SHARED) for name in rights or NOBODY
    }
    assert not any(map(has_letters, found)) or rights


def test_a_cell_without_a_list() -> None:
    assert JSON_LISTS.rows_of(SHARED, []) == ()
    assert JSON_LISTS.rows_of(SHARED, [Row({"id": SHARED, "acl": None})]) == ()
    bad = Row({"id": SHARED, "acl": '{"entries": []}'})
    assert why(JSON_LISTS, bad) == f"acl: list of {SHARED}: a list of rights has no entries"


# --- rows, and who has one -----------------------------------------------------------------------


def test_rows_are_their_own_truth() -> None:
    row = Row({"id": SHARED, "key": ANA, "rights": frozenset("l")})
    assert LIST_ROWS.rows_of(SHARED, [row]) == (row,)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        (ANA, True),
        ("a$b", True),
        ("owners", True),
        ("$staff", False),
        ("-ana", False),
        ("-$staff", False),
        ("owner", False),
        ("anyone", False),
        ("authenticated", False),
    ],
)
def test_only_users_with_rights_have_a_row(name: str, there: bool) -> None:
    assert has_rights(Row({"key": name, "rights": frozenset("l")})) is there
    assert not has_rights(Row({"key": name, "rights": frozenset()}))


@pytest.mark.parametrize("truth", [JSON_LISTS, LIST_ROWS])
def test_a_list_that_has_events_is_not_known_from_an_older_table(truth: TruthTable) -> None:
    stored: dict[KeyValue, list[Row]] = {SHARED: []}
    assert truth.rows_of_each(stored) == {}
    with pytest.raises(MalformedContent, match=f"eventstore has a newer list of {SHARED}"):
        truth.rows_of_each(stored, [SHARED])
    assert rights_from(truth.table).reads == (EVENTS.table,), "a role needs to read it"
