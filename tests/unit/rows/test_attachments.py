"""The truth of attachments: what a message's list names."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.attachments import ID_AS_TEXT, WRITTEN_WITH_LIST, id_as_uuid, of_list
from reconcilers.declared.truth import Malformed
from reconcilers.words.model import Row, Value
from tests.builders.rows import LONG_AGO

MESSAGE = UUID("11111111-0000-1000-8000-000000000001")
texts = st.text(min_size=1).filter(lambda each: each.isprintable())


def stored(*attachments: object) -> Row:
    cells: dict[str, Value] = {"attachments": json.dumps(attachments), WRITTEN_WITH_LIST: 100}
    return Row(cells, {WRITTEN_WITH_LIST: LONG_AGO})


def ids(*rows: Row) -> list[Value] | str:
    found = of_list(MESSAGE, rows)
    return found.reason if isinstance(found, Malformed) else [row.get("id") for row in found]


# --- the UUID of a text id -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "uuid"),
    [
        # printed by java.util.UUID.nameUUIDFromBytes(text.getBytes(UTF_8))
        ("ghkocfvxtbfkbtgqysfd", "75ea5c0c-f443-382b-81f7-91a321cdf8d5"),
        ("", "d41d8cd9-8f00-3204-a980-0998ecf8427e"),
        ("é\U0001f4ce", "b404caf1-f551-3cc8-8bfc-6db1985cda1c"),
    ],
)
def test_an_id_s_uuid_is_that_of_java(text: str, uuid: str) -> None:
    assert id_as_uuid(text) == UUID(uuid)


@given(texts, texts)
def test_each_id_has_a_name_based_uuid_of_its_own(one: str, other: str) -> None:
    assert (id_as_uuid(one) == id_as_uuid(other)) == (one == other)
    assert (id_as_uuid(one).version, id_as_uuid(one).variant) == (3, UUID(int=1 << 63).variant)


# --- the list ------------------------------------------------------------------------------------


def test_each_attachment_is_a_row_under_the_names_of_both_tables() -> None:
    (row,) = of_list(MESSAGE, [stored({"id": "abc", "name": "a.pdf", "isinline": False})])  # type: ignore[misc]
    uuid = id_as_uuid("abc")
    assert row.cells == {
        "messageid": MESSAGE,
        "message_id": MESSAGE,
        "message": str(MESSAGE),
        "attachmentidasuuid": uuid,
        "idasuuid": uuid,
        "attachmentid": "abc",
        "id": "abc",
        WRITTEN_WITH_LIST: 100,
    }
    assert set(row.written.values()) == {LONG_AGO}
    assert set(row.written) == {"attachmentid", "id", "message_id"}


@given(st.lists(texts, max_size=5))
def test_a_list_names_each_of_its_ids_once(listed: list[str]) -> None:
    named = ids(stored(*({"id": each, "name": None} for each in listed)))
    assert named == list(dict.fromkeys(listed))


@pytest.mark.parametrize("empty", [None, "null", "[]"])
def test_a_message_without_attachments(empty: str | None) -> None:
    assert ids(Row({"attachments": empty})) == []
    assert ids() == []


def test_a_list_that_was_sent_twice_is_one() -> None:
    twice = [{"id": "abc"}, {"id": "def"}] * 2
    assert ids(stored(*twice)) == ["abc", "def"]


@pytest.mark.parametrize(
    ("attachment", "why"),
    [
        ({"id": None, "name": "a"}, "an attachment has no id"),
        ({"id": ""}, "an attachment has no id"),
        ({"id": 7}, "an attachment has no id"),
        ({"name": "a"}, "an attachment has no id"),
        (None, "an attachment has no id"),
        ("abc", "an attachment has no id"),
        ({"id": "\ud800"}, "an id is not text"),
    ],
)
def test_a_list_that_james_cannot_load_is_malformed_as_a_whole(
    attachment: object, why: str
) -> None:
    assert ids(stored({"id": "abc"}, attachment)) == f"attachments of {MESSAGE}: {why}"


@pytest.mark.parametrize(
    ("text", "why"),
    [("[", "it is not JSON"), ("[" * 100_000, "it is not JSON"), ("{}", "it is not a JSON list")],
)
def test_a_cell_that_is_no_list_is_malformed(text: str, why: str) -> None:
    assert ids(Row({"attachments": text})) == f"attachments of {MESSAGE}: {why}"


def test_without_write_times_a_row_has_none() -> None:
    (row,) = of_list(MESSAGE, [Row({"attachments": '[{"id": "abc"}]'})])  # type: ignore[misc]
    assert row.written == {}


# --- the message's id as text --------------------------------------------------------------------


@given(st.uuids())
def test_a_message_id_and_its_text_are_one(uuid: UUID) -> None:
    assert ID_AS_TEXT.back(ID_AS_TEXT.forth(uuid)) == uuid


@pytest.mark.parametrize("text", [None, "", "abc", str(MESSAGE) + "0", f"{{{MESSAGE}}}", 7])
def test_a_text_that_james_does_not_write_names_no_message(text: Value) -> None:
    assert ID_AS_TEXT.back(text) is None


def test_no_id_has_no_text() -> None:
    assert ID_AS_TEXT.forth(None) is None
