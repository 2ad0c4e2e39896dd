"""What the journal keeps comes back exactly."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import codec
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.rows.acceptance import Accepted, Reason
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Misconfigured
from reconcilers.words.millis import Millis
from reconcilers.words.model import Kind, Row, Slot, Value
from reconcilers.words.waiting import Wait
from tests.builders.found import finding_at

PROJECTION = MESSAGE.projections[0]

dates = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**46), 2**48)).map(Millis)
values: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.uuids(),
    dates,
    st.frozensets(st.text()),
)
times = st.integers(1, 2**62)
slots = st.builds(Slot, st.uuids(), st.integers(0, 2**63 - 1))
rows = st.builds(
    Row,
    st.dictionaries(st.text(min_size=1), values, max_size=6),
    st.dictionaries(st.text(min_size=1), times, max_size=6),
)
elements = st.frozensets(st.text())
writes: st.SearchStrategy[Write] = st.one_of(
    st.builds(
        SetCells, st.just(PROJECTION), slots, times, st.dictionaries(st.text(), values, max_size=4)
    ),
    st.builds(AddToSet, st.just(PROJECTION), slots, times, st.text(), elements),
    st.builds(RemoveFromSet, st.just(PROJECTION), slots, times, st.text(), elements),
    st.builds(AddRow, st.just(PROJECTION), slots, times),
    st.builds(DeleteRow, st.just(PROJECTION), slots, times),
)
reasons = st.builds(
    Reason,
    st.sampled_from(Kind),
    st.none() | st.sampled_from(Wait),
    st.dictionaries(st.text(), st.integers(), max_size=2).map(
        lambda each: tuple(sorted(each.items()))
    ),
)
findings = st.builds(
    Finding,
    family=st.just(MESSAGE.name),
    projection=st.just(PROJECTION.name),
    slot=slots,
    source=st.none() | st.uuids().map(str),
    kind=st.sampled_from(Kind),
    state=st.sampled_from(State),
    sentence=st.text(),
    found_at=times,
    oldest=st.none() | times,
    attempts=st.integers(0, 9),
    batch=st.text(),
    before=st.none() | rows,
    writes=st.lists(writes, max_size=3).map(tuple),
    next_look=st.none() | times,
    accepted=st.frozensets(st.builds(Accepted, reasons, times, times), max_size=2),
    truth=st.lists(rows, max_size=2).map(tuple),
)


def through_text(value: object) -> object:
    return json.loads(codec.text_of(value))


@given(values)
def test_every_cell_comes_back_as_the_same_value_of_the_same_type(value: Value) -> None:
    back = codec.value_from_json(through_text(codec.value_to_json(value)))
    assert back == value
    assert type(back) is type(value)


@given(findings)
def test_every_finding_comes_back_whole(finding: Finding) -> None:
    stored = through_text(codec.finding_to_json(finding, MESSAGE))
    assert isinstance(stored, dict)
    assert codec.finding_from_json(stored, MESSAGE) == finding


@pytest.mark.parametrize(
    ("date", "kept"),
    [
        (0, "1970-01-01T00:00:00"),
        (1_795_255_200_123, "2026-11-21T10:00:00.123000"),
        (-62_135_596_800_000, "0001-01-01T00:00:00"),
        (-62_135_596_800_001, -62_135_596_800_001),
        (253_402_300_799_999, "9999-12-31T23:59:59.999000"),
        (253_402_300_800_000, 253_402_300_800_000),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_a_date_is_kept_as_people_read_it_where_there_is_such_a_date(
    date: int, kept: str | int
) -> None:
    assert codec.value_to_json(Millis(date)) == {"datetime": kept}
    assert codec.value_from_json({"datetime": kept}) == Millis(date)


@pytest.mark.parametrize("zone", ["", "+00:00", "Z"])
def test_a_date_that_version_0_1_wrote_is_read(zone: str) -> None:
    written = {"datetime": f"2026-11-21T10:00:00.123000{zone}"}
    assert codec.value_from_json(written) == Millis(1_795_255_200_123)


def test_true_is_not_one_and_null_is_not_empty() -> None:
    row = Row({"a": True, "b": 1, "c": None, "d": frozenset()}, {})
    stored = through_text(codec.row_to_json(row))
    assert stored == {"cells": {"a": True, "b": 1, "c": None, "d": {"set": []}}, "written": {}}


def test_a_write_is_resolved_through_the_family_as_it_is_now() -> None:
    now = replace(PROJECTION, columns=("flagseen",), sets=frozenset({"userflags"}))
    family = replace(MESSAGE, projections=(now,))
    write = DeleteRow(PROJECTION, Slot(UUID(int=1), 1), 5)
    read = codec.write_from_json(codec.write_to_json(write, family), family)
    assert isinstance(read, DeleteRow)
    assert read.projection == now


def test_a_write_to_a_projection_that_is_not_declared_is_refused() -> None:
    stored = codec.write_to_json(DeleteRow(PROJECTION, Slot(UUID(int=1), 1), 5), MESSAGE)
    with pytest.raises(Misconfigured, match="messages"):
        codec.write_from_json(stored, replace(MESSAGE, projections=()))


@pytest.mark.parametrize("damaged", [1.5, [], {"uuid": 5}, {"other": "x"}])
def test_what_is_not_a_cell_is_refused(damaged: object) -> None:
    with pytest.raises(ValueError, match="not a cell"):
        codec.value_from_json(damaged)


@pytest.mark.parametrize("change", [AddToSet, RemoveFromSet])
def test_the_elements_of_a_set_are_kept_in_their_order(
    change: type[AddToSet] | type[RemoveFromSet],
) -> None:
    flags = frozenset("abcdefgh")
    kept = codec.write_to_json(change(PROJECTION, Slot(UUID(int=1), 1), 5, "flags", flags), MESSAGE)
    assert (kept["column"], kept["elements"]) == ("flags", list("abcdefgh"))


def test_what_is_kept_has_no_space_between() -> None:
    assert codec.text_of({"a": [1, None], "b": "x y"}) == '{"a":[1,null],"b":"x y"}'


def test_a_write_that_no_word_stands_for_is_refused() -> None:
    with pytest.raises(ValueError, match="not a write"):
        codec.write_to_json(Write(PROJECTION, Slot(UUID(int=1), 1), 5), MESSAGE)


def test_a_log_line_tells_the_state_that_was_reached() -> None:
    finding = finding_at(1, found_at=1)
    line = codec.log_line(finding, MESSAGE, State.VERIFIED, 77)
    assert (line["state"], line["at"], line["found_at"]) == ("verified", 77, 1)
