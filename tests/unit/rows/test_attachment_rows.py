"""Steps 3 to 7 on fakes for the rows of attachments, which keep what no other table has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.family import bind
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.writes import SetCells
from reconcilers.rows.finding import Action
from reconcilers.words.errors import Misconfigured, Refused
from reconcilers.words.model import KeyValue, Kind, Row, Slot, Suspect, Wake
from streaming.pipeline.open_finding import finding_wake
from tests.builders.attachments import (
    ATTACHMENTS,
    MESSAGE,
    OTHER,
    PDF,
    PNG,
    ROWS,
    SCHEMA,
    attachment,
    content,
    place,
)
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, LONG_AGO, NOW

OF_MESSAGE = Wake((None,), MESSAGE, LONG_AGO, from_truth=True)
PLACE = place()


def ground(
    stored: Mapping[KeyValue, Row] | None = None, rows: Mapping[Slot, Row] | None = None
) -> Ground:
    truths: dict[KeyValue, tuple[Row, ...]] = {
        message: (row,) for message, row in (stored or {}).items()
    }
    return Ground(truths, dict(rows or {}), family=ATTACHMENTS)


def suspect(kind: Kind, *sources: KeyValue) -> Suspect:
    return Suspect(PLACE, frozenset(sources), kind, ROWS.name, LONG_AGO, suspected=kind)


def reported(scene: Ground, one: Suspect) -> tuple[Kind, str]:
    (outcome,) = scene.settle(one)
    assert outcome.action is Action.REPORT
    assert scene.tables.applied == []
    return scene.finding.kind, scene.finding.sentence.removeprefix("attachments: ")


def is_kept(scene: Ground, one: Suspect) -> bool:
    """Whether the finding of a suspect stays as it is."""
    before = scene.finding
    (outcome,) = scene.settle(one)
    return outcome.action is Action.KEEP and scene.finding.kind is before.kind


def repaired(scene: Ground, one: Suspect) -> SetCells:
    (outcome,) = scene.settle(one)
    assert outcome.action is Action.REPAIR
    (write,) = scene.tables.applied
    assert isinstance(write, SetCells)
    return write


# --- what is reported ----------------------------------------------------------------------------

NAMED = f"attachment {PLACE.group}"


def test_an_attachment_whose_row_is_missing_is_reported() -> None:
    scene = ground({MESSAGE: content(PDF, PNG)}, {place(PNG): attachment(PNG)})
    (one,) = scene.look(OF_MESSAGE).suspects
    assert (one.slot, one.kind) == (PLACE, Kind.MISSING_ROW)
    told = f"{NAMED} is missing, and message {MESSAGE} names it: restore it from a backup"
    assert reported(scene, one) == (Kind.MISSING_CONTENT, told)


def test_a_partial_row_is_reported() -> None:
    scene = ground({MESSAGE: content(PDF)}, {PLACE: attachment(blob=None)})
    (one,) = scene.look(OF_MESSAGE).suspects
    told = f"{NAMED} lacks blobid, and message {MESSAGE} names it: restore it from a backup"
    assert reported(scene, one) == (Kind.MISSING_CONTENT, told)


def test_an_attachment_of_a_message_without_a_place_is_not_missed() -> None:
    """James has deleted it, and will delete the content of the message."""
    scene = ground({MESSAGE: content(PDF)})
    scene.existing = {OTHER}
    (outcome,) = scene.settle(suspect(Kind.MISSING_ROW, MESSAGE))
    assert outcome.action is Action.NOTHING
    assert list(scene.journal.open_findings(ATTACHMENTS)) == []


def test_a_message_whose_place_cannot_be_read_is_taken_to_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = ground({MESSAGE: content(PDF)})

    def refuse(_scene: Ground, _sources: object) -> set[KeyValue]:
        raise Refused("no SELECT on imapuidtable")

    monkeypatch.setattr(Ground, "having_owner", refuse)
    assert reported(scene, suspect(Kind.MISSING_ROW, MESSAGE))[0] is Kind.MISSING_CONTENT


@pytest.mark.parametrize("stored", [{}, {MESSAGE: content(PNG)}])
def test_a_row_that_its_message_does_not_name_is_reported_after_two_looks(
    stored: Mapping[KeyValue, Row],
) -> None:
    scene = ground(stored, {PLACE: attachment()})
    (outcome,) = scene.settle(replace(suspect(Kind.EXTRA_ROW), suspected=None))
    assert outcome.action is Action.LOOK_AGAIN
    told = f"{NAMED} names message {MESSAGE}, which is gone or does not name it"
    kind, sentence = reported(scene, suspect(Kind.EXTRA_ROW))
    assert (kind, sentence) == (
        Kind.LEFT_OVER,
        f"{told}: it is kept, another may refer to it",
    )


def test_a_row_without_a_message_is_reported() -> None:
    scene = ground(rows={PLACE: attachment(message=None)})
    told = f"{NAMED} names no message, and attachmentowners names no owner"
    assert reported(scene, suspect(Kind.EXTRA_ROW)) == (Kind.UNRESOLVED, told)


def test_an_upload_that_a_user_owns_is_right() -> None:
    scene = ground(rows={PLACE: attachment(message=None)})
    scene.owned.add(PLACE.group)
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.NOTHING
    assert scene.tables.applied == []
    assert list(scene.journal.open_findings(ATTACHMENTS)) == []


def test_an_upload_whose_owner_cannot_be_read_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = ground(rows={PLACE: attachment(message=None)})

    def refuse(_scene: Ground, _things: object) -> set[KeyValue]:
        raise Refused("no SELECT on attachmentowners")

    monkeypatch.setattr(Ground, "having_user", refuse)
    assert reported(scene, suspect(Kind.EXTRA_ROW))[0] is Kind.UNRESOLVED


def test_an_attachment_of_a_message_needs_its_message_whoever_owns_it() -> None:
    scene = ground(rows={PLACE: attachment()})
    scene.owned.add(PLACE.group)
    assert reported(scene, suspect(Kind.EXTRA_ROW))[0] is Kind.LEFT_OVER


def test_without_a_table_of_owners_a_row_without_a_message_is_right() -> None:
    newer = bind(ATTACHMENT, {each: SCHEMA[each] for each in SCHEMA if each != "attachmentowners"})
    assert newer.truth.users is None
    scene = ground(rows={PLACE: attachment(message=None)})
    scene.family = newer
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.NOTHING
    assert scene.tables.applied == []


def test_a_list_without_the_cell_that_dates_it_is_reported() -> None:
    scene = ground({MESSAGE: Row({"attachments": content(PDF).get("attachments")})})
    kind, _ = reported(scene, suspect(Kind.MISSING_ROW, MESSAGE))
    assert kind is Kind.INCOMPLETE_TRUTH_ROW


def test_each_list_that_james_could_not_load_is_a_finding_of_its_own() -> None:
    broken = Row({"attachments": '[{"id": null}]'})
    third = UUID(int=0x1000 << 64 | 1 << 63 | 3)
    scene = ground({MESSAGE: broken, OTHER: broken, third: content(PDF)})
    looks = scene.looks([OF_MESSAGE, *(Wake((None,), each) for each in (OTHER, third))])
    suspects = {each.slot: each for one in looks for each in one.suspects}
    assert {slot: each.kind for slot, each in suspects.items()} == {
        **dict.fromkeys((Slot(MESSAGE), Slot(OTHER)), None),
        PLACE: Kind.MISSING_ROW,
    }
    kind, sentence = reported(scene, suspects[Slot(MESSAGE)])
    assert kind is Kind.UNREADABLE
    assert f"attachments of {MESSAGE}: an attachment has no id" in sentence
    scene.truths[MESSAGE] = (content(PNG),)
    again = replace(suspects[Slot(MESSAGE)].wake(None), projection=ROWS.name)
    for each in scene.look(again).suspects:
        scene.settle(each)
    assert Slot(MESSAGE) not in {each.slot for each in scene.journal.open_findings(ATTACHMENTS)}


@pytest.mark.parametrize("row", [{}, {PLACE: attachment(message=None, blob=None)}])
def test_what_is_reported_stays_open_when_its_key_comes_back(row: Mapping[Slot, Row]) -> None:
    """The key names no message, and there is no lineage: the finding carries it."""
    scene = ground({MESSAGE: content(PDF)}, row)
    (one,) = scene.look(OF_MESSAGE).suspects
    reported(scene, one)
    for _ in range(2):
        (again,) = scene.look(finding_wake(ATTACHMENTS, scene.finding)).suspects
        assert again.kind is one.kind
        assert is_kept(scene, again)
    scene.rows[PLACE] = attachment()
    (again,) = scene.look(finding_wake(ATTACHMENTS, scene.finding)).suspects
    scene.settle(again)
    assert list(scene.journal.open_findings(ATTACHMENTS)) == []


def test_a_list_that_stays_malformed_stays_a_finding() -> None:
    scene = ground({MESSAGE: Row({"attachments": '[{"id": null}]'})})
    (one,) = scene.look(OF_MESSAGE).suspects
    assert reported(scene, one)[0] is Kind.UNREADABLE
    (again,) = scene.look(finding_wake(ATTACHMENTS, scene.finding)).suspects
    assert is_kept(scene, again)


def test_an_attachment_of_two_messages_that_is_missing_is_found_by_its_own_key() -> None:
    scene = ground({message: content(PDF) for message in (MESSAGE, OTHER)})
    (one,) = scene.look(OF_MESSAGE, Wake((None,), OTHER)).suspects
    assert one.sources == {MESSAGE, OTHER}
    (again,) = scene.look(one.wake(one.kind)).suspects
    assert again.kind is Kind.MISSING_ROW


def test_what_was_written_within_the_delay_is_not_judged() -> None:
    scene = ground({MESSAGE: content(PDF, at=NOW)})
    (outcome,) = scene.settle(suspect(Kind.MISSING_ROW, MESSAGE), after=DELAY - 1)
    assert outcome.action is Action.LOOK_AGAIN


def test_a_deleted_row_leads_nowhere() -> None:
    gone = Wake(PLACE.key, None, deleted_from="attachmentv2", deleted_at=LONG_AGO)
    for wake in (gone, replace(gone, looked_again=True, projection=ROWS.name)):
        looked = ground().look(wake)
        assert [each.kind for each in looked.suspects] == ([None] if wake.looked_again else [])
        assert looked.again == ()


# --- what is corrected ---------------------------------------------------------------------------


def test_a_row_without_a_message_gets_the_one_that_names_it() -> None:
    scene = ground({MESSAGE: content(PDF)}, {PLACE: attachment(message=None)})
    (one,) = scene.look(OF_MESSAGE).suspects
    assert (one.kind, one.columns) == (Kind.DIFFERING_CELLS, ("message_id",))
    assert repaired(scene, one) == SetCells(ROWS, PLACE, LONG_AGO + 1, {"message_id": MESSAGE})


def test_a_row_of_a_message_that_is_gone_gets_one_that_names_it() -> None:
    scene = ground({MESSAGE: content(PDF)}, {PLACE: attachment(message=OTHER)})
    (one,) = scene.look(OF_MESSAGE).suspects
    assert repaired(scene, one) == SetCells(ROWS, PLACE, LONG_AGO + 1, {"message_id": MESSAGE})


def test_a_row_may_belong_to_several_messages() -> None:
    both: dict[KeyValue, Row] = {message: content(PDF) for message in (MESSAGE, OTHER)}
    for named in both:
        scene = ground(both, {PLACE: attachment(message=named)})
        assert scene.look(OF_MESSAGE, Wake((None,), OTHER)).suspects == ()
    scene = ground(both, {PLACE: attachment(message=None)})
    (one,) = scene.look(OF_MESSAGE, Wake((None,), OTHER)).suspects
    assert repaired(scene, one).cells == {"message_id": MESSAGE}


# --- nothing else is written ---------------------------------------------------------------------

names = st.sampled_from([PDF, PNG])
contents = st.dictionaries(st.sampled_from([MESSAGE, OTHER]), st.sets(names))
stored = st.dictionaries(
    names, st.tuples(st.sampled_from([MESSAGE, OTHER, None]), st.sampled_from(["blob", None]))
)


@given(contents, stored)
def test_rows_are_neither_added_nor_removed(
    listed: dict[KeyValue, set[str]], there: dict[str, tuple[KeyValue | None, str | None]]
) -> None:
    """Whatever stands on either side, and a row that can be read names a message that names it."""
    before = {place(name): attachment(name, *cells) for name, cells in there.items()}
    scene = ground({message: content(*ids) for message, ids in listed.items()}, before)
    scene.converge(
        *(Wake((None,), message, LONG_AGO) for message in listed),
        *(Wake((place(name).key), cells[0], LONG_AGO) for name, cells in there.items()),
    )
    assert scene.rows.keys() == before.keys()
    for name in there:
        row, was = scene.rows[place(name)], before[place(name)]
        assert (row.get("id"), row.get("blobid")) == (was.get("id"), was.get("blobid"))
        naming = {message for message, ids in listed.items() if name in ids}
        if row.get("blobid") is not None and naming:
            assert row.get("message_id") in naming
        else:
            assert row.get("message_id") == was.get("message_id")


def test_the_declaration() -> None:
    assert ROWS.columns == ("id", "message_id")
    assert raw_shape(ATTACHMENTS) is None
    without = {
        column: each for column, each in SCHEMA["attachmentv2"].items() if column != "blobid"
    }
    with pytest.raises(Misconfigured, match="attachmentv2 has no column blobid"):
        bind(ATTACHMENT, {**SCHEMA, "attachmentv2": without})
    with pytest.raises(Misconfigured, match="needs lineage"):
        replace(ATTACHMENT, projections=(replace(ATTACHMENT.listing, keeps=()),))
