"""A declared key: what its text is, how it is read again, and what no family may declare."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.family import Family
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.words.errors import Misconfigured, NotGuarded
from reconcilers.words.key import (
    WHOLE_TABLE,
    KeyColumn,
    named,
    shape,
    slot_from_text,
    slot_of,
    text_of,
)
from reconcilers.words.model import PUBLISHED, WAKE_FIELDS, Kind, Slot, Suspect, Wake, look_again
from tests.builders.rights import BOB, EVE, RIGHTS, SHARED, place
from tests.builders.rows import MAILBOX, SLOT

ANY_KEY = (
    KeyColumn("a", "text", "a"),
    KeyColumn("b", "timeuuid", "b"),
    KeyColumn("c", "bigint", "c"),
)
slots = st.builds(Slot, st.text(), st.uuids(), st.integers(-(2**63), 2**63 - 1))


@given(slots)
def test_every_slot_comes_back_from_its_text_and_from_json(slot: Slot) -> None:
    assert slot_from_text(ANY_KEY, text_of(slot)) == slot
    assert slot_of(ANY_KEY, named(ANY_KEY, slot.key)) == slot


@given(slots, slots)
def test_two_slots_have_two_texts(one: Slot, other: Slot) -> None:
    assert (text_of(one) == text_of(other)) is (one == other)


def test_a_message_s_key_is_typed_as_ever() -> None:
    assert text_of(SLOT) == f"{MAILBOX}/7"
    assert slot_from_text(MESSAGE.key, f"{MAILBOX}/7") == SLOT
    assert shape(MESSAGE.key) == "MAILBOXID/UID"


def test_a_slash_in_a_name_does_not_part_it() -> None:
    assert text_of(place(BOB)) == f"bob%2Fsmith@example.com/{SHARED}"
    assert text_of(place(EVE)) == f"eve 100%25/{SHARED}"
    assert slot_from_text(RIGHTS.key, text_of(place(EVE))) == place(EVE)


@pytest.mark.parametrize("text", ["x/7", f"{MAILBOX}/x"])
def test_what_is_no_key_of_messages_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        slot_from_text(MESSAGE.key, text)


@pytest.mark.parametrize(
    "text", ["", "x", f"{MAILBOX}", f"{MAILBOX}/", "/7", "/", f"{MAILBOX}/7/8", f"{MAILBOX}/7/"]
)
def test_what_has_not_the_parts_of_a_key_is_refused_with_its_shape(text: str) -> None:
    with pytest.raises(ValueError, match=f"^'{text}' is not MAILBOXID/UID$"):
        slot_from_text(MESSAGE.key, text)


def test_one_part_without_its_mark_is_enough_to_refuse_a_key() -> None:
    columns = (KeyColumn("root", "text", "root", mark="&"), KeyColumn("n", "bigint", "n"))
    assert slot_from_text(columns, "#private&bob/7") == Slot("#private&bob", 7)
    with pytest.raises(ValueError, match=r"^'bob/7' is not ROOT/N$"):
        slot_from_text(columns, "bob/7")
    assert slot_from_text(USER_TALLY.key, "#private&bob") == Slot("#private&bob")
    with pytest.raises(ValueError, match=r"^'bob' is not QUOTAROOT$"):
        slot_from_text(USER_TALLY.key, "bob")


@pytest.mark.parametrize(
    ("cql_type", "none_named", "of_no_row"),
    [
        ("uuid", UUID(int=0), UUID(int=0)),
        ("timeuuid", UUID(int=0), UUID("00000000-0000-1000-8000-000000000000")),
        ("tinyint", -1, -1),
        ("bigint", -1, -1),
        ("text", "", "\0"),
        ("ascii", "", "\0"),
    ],
)
def test_what_stands_for_no_part_and_for_that_of_no_row(
    cql_type: str, none_named: object, of_no_row: object
) -> None:
    column = KeyColumn("a", cql_type, "a")
    assert (column.none_named, column.of_no_row) == (none_named, of_no_row)


def test_a_uuid_of_any_version_is_taken() -> None:
    other = uuid4()
    assert slot_from_text(MESSAGE.key, f"{other}/1") == Slot(other, 1)
    assert MESSAGE.key[0].own_type == "uuid"


@pytest.mark.parametrize("family", [MESSAGE, RIGHTS], ids=lambda family: family.name)
def test_a_whole_group_stands_where_no_row_does_and_is_typed_like_one(family: Family) -> None:
    group = family.nowhere.group
    whole = family.whole_group(group)
    assert slot_from_text(family.key, text_of(whole)) == whole
    assert family.place(whole) == f"{family.group.label} {group} as a whole"
    assert family.is_whole_group(whole)
    assert family.is_whole_group(family.whole_group(None))
    assert not family.is_whole_group(SLOT)


@pytest.mark.parametrize("family", [MESSAGE, RIGHTS], ids=lambda family: family.name)
def test_a_place_of_many_rows_is_no_rows_and_is_typed_like_one(family: Family) -> None:
    first, second = family.place_of_number(0), family.place_of_number(2**32)
    assert first != second
    assert not {first, second} & {family.whole_group(None), family.nowhere}
    for each in (first, second):
        assert slot_from_text(family.key, text_of(each)) == each
        assert not family.is_whole_group(each)


@pytest.mark.parametrize(
    ("cql_type", "numbered"),
    [("timeuuid", [UUID(int=1), UUID(int=8)]), ("bigint", [-2, -9]), ("text", ["\x000", "\x007"])],
)
def test_there_is_a_value_of_no_row_for_each_number(cql_type: str, numbered: list[object]) -> None:
    column = KeyColumn("a", cql_type, "a")
    assert [column.of_no_row_numbered(each) for each in (0, 7)] == numbered


def test_a_whole_table_has_no_text_and_no_parts() -> None:
    assert text_of(WHOLE_TABLE) == ""
    assert named(MESSAGE.key, WHOLE_TABLE.key) == {"mailboxid": None, "uid": None}
    assert slot_of(MESSAGE.key, {"mailboxid": None, "uid": None}) == WHOLE_TABLE
    assert slot_of(MESSAGE.key, {"mailboxid": None, "uid": 7}) == WHOLE_TABLE


def test_a_type_that_has_no_text_is_no_key() -> None:
    with pytest.raises(Misconfigured, match="of type blob"):
        KeyColumn("a", "blob", "a")


# --- slots ---------------------------------------------------------------------------------------


def test_slots_are_what_their_keys_are() -> None:
    assert Slot(MAILBOX, 7) == SLOT
    assert hash(Slot(MAILBOX, 7)) == hash(SLOT)
    assert Slot(MAILBOX, 8) != SLOT
    assert Slot(MAILBOX) != SLOT
    assert SLOT.key != SLOT
    assert not Slot(MAILBOX, 7) > SLOT
    assert sorted([Slot(MAILBOX, 8), SLOT]) == [SLOT, Slot(MAILBOX, 8)]
    one, other = Slot(MAILBOX, -1), Slot(MAILBOX, -2)
    assert hash(one) == hash(other)
    assert one != other


def test_a_slot_s_hash_is_the_same_in_the_next_process() -> None:
    """`scheduled_looks.spread` rests on it: several workers ask for the same look."""
    code = (
        "from uuid import UUID; from reconcilers.words.model import Slot;"
        f"print(hash(Slot({BOB!r}, UUID({str(SHARED)!r}))))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) == hash(place(BOB))


# --- wakes ---------------------------------------------------------------------------------------


def test_a_wake_names_a_slot_only_by_its_whole_key() -> None:
    whole = look_again(place(), "user_rights")
    assert whole.slot == place()
    assert replace(whole, key=(BOB, None)).slot is None
    assert replace(whole, key=(None, SHARED)).group is None


@pytest.mark.parametrize(
    ("key", "covered"),
    [
        ((None, None), True),
        ((BOB, None), True),
        ((None, SHARED), True),
        ((BOB, SHARED), True),
        ((EVE, None), False),
        ((None, MAILBOX), False),
    ],
)
def test_what_a_wake_knows_of_its_key_narrows_what_it_means(
    key: tuple[str | None, UUID | None], covered: bool
) -> None:
    assert replace(look_again(place(), ""), key=key).covers(place()) is covered


@pytest.mark.parametrize(
    ("sources", "named"),
    [([], None), ([SHARED], SHARED), ([SHARED, MAILBOX], min(SHARED, MAILBOX, key=str))],
)
def test_a_suspect_comes_back_with_one_of_its_sources(
    sources: list[UUID], named: UUID | None
) -> None:
    suspect = Suspect(place(), frozenset(sources), Kind.MISSING_ROW, "user_rights", 5)
    expected = look_again(place(), "user_rights", named, 5, Kind.EXTRA_ROW)
    assert suspect.wake(Kind.EXTRA_ROW) == expected
    assert suspect.wake(Kind.EXTRA_ROW).source is named


def test_a_wake_and_a_suspect_tell_no_more_than_they_are_told() -> None:
    assert Wake((BOB, SHARED), None) == Wake(
        (BOB, SHARED),
        None,
        oldest=None,
        deleted_from=None,
        deleted_at=None,
        from_truth=False,
        looked_again=False,
        expires_at=None,
        projection=None,
        changes=1,
        suspected=None,
    )
    told = (place(), frozenset({SHARED}), None, "user_rights")
    assert Suspect(*told) == Suspect(
        *told, oldest=None, looked_again=False, suspected=None, unreadable=None
    )
    again = look_again(place(), "user_rights")
    assert (again.source, again.oldest, again.suspected) == (None, None, None)


def test_what_is_published_is_told_too() -> None:
    assert set(PUBLISHED) <= set(WAKE_FIELDS)
    assert {"key", "source"} == {each.name for each in fields(Wake)} - set(WAKE_FIELDS)


# --- families ------------------------------------------------------------------------------------


def test_a_sentence_names_a_place_by_its_family_s_words() -> None:
    assert MESSAGE.place(SLOT) == f"mailbox {MAILBOX} UID 7"
    assert RIGHTS.place(place()) == f"user {BOB} mailbox {SHARED}"
    assert MAILBOX_TALLY.place(Slot(MAILBOX)) == f"mailbox {MAILBOX}"
    assert USER_TALLY.place(Slot("#private&bob")) == "quota root #private&bob"


def test_no_family_writes_what_it_reads_as_truth() -> None:
    truth, tally = MESSAGE.truth, USER_TALLY.tallies[0]
    listing = replace(MESSAGE.listing, table="aclv2")
    with pytest.raises(NotGuarded, match="aclv2"):
        replace(MESSAGE, truth=replace(truth, table="aclv2"), projections=(listing,))
    with pytest.raises(NotGuarded, match="currentquota"):
        replace(USER_TALLY, tallies=(tally,), reads=("currentquota",))


def test_names_that_could_not_be_told_apart_are_refused() -> None:
    for column in (RIGHTS.truth.source, KeyColumn("oldest", "text", "x")):
        with pytest.raises(Misconfigured, match="two names alike"):
            replace(RIGHTS, key=(column, *RIGHTS.key[1:]))


def test_a_projection_of_another_key_is_refused() -> None:
    with pytest.raises(Misconfigured, match="another key"):
        replace(RIGHTS, projections=(replace(RIGHTS.listing, key=("username",)),))


def test_each_table_that_wakes_a_family_holds_its_key() -> None:
    for family in FAMILIES:
        assert all(family.key_of(table) for table in family.wakes_on), family.name
    assert MESSAGE.key_of("mailboxrecents") == ("mailboxid", "recent_mesage_uid")
    assert MESSAGE.key_of("nothing") is None
    assert len(MESSAGE.projections) == len(MESSAGE_PROJECTIONS)
