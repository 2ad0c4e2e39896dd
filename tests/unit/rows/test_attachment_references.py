"""Steps 3 to 7 on fakes for the references of attachments to messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.family import bind
from reconcilers.declared.writes import DeleteRow, SetCells
from reconcilers.rows.finding import Action
from reconcilers.words.errors import NotGuarded, Refused
from reconcilers.words.model import KeyValue, Kind, Row, Slot, Suspect, Wake
from streaming.steps.look import LookResult
from tests.builders.attachments import (
    LISTING,
    MESSAGE,
    OTHER,
    PDF,
    PNG,
    REFERENCES,
    SCHEMA,
    content,
    reference,
    reference_place,
)
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, LONG_AGO, NOW

OF_MESSAGE = Wake((None, str(MESSAGE)), MESSAGE, LONG_AGO, from_truth=True)
"""What an event of a message's content wakes."""
PLACE = reference_place()


def ground(
    stored: Mapping[KeyValue, Row] | None = None,
    rows: Mapping[Slot, Row] | None = None,
    existing: frozenset[KeyValue] = frozenset(),
) -> Ground:
    truths: dict[KeyValue, tuple[Row, ...]] = {
        message: (row,) for message, row in (stored or {}).items()
    }
    return Ground(truths, dict(rows or {}), family=REFERENCES, existing={*existing, *truths})


def found(looked: LookResult) -> dict[Slot, Kind | None]:
    return {each.slot: each.kind for each in looked.suspects}


def suspect(kind: Kind, slot: Slot = PLACE) -> Suspect:
    return Suspect(slot, frozenset(), kind, LISTING.name, LONG_AGO, suspected=kind)


def removed(scene: Ground) -> list[Slot]:
    return [each.slot for each in scene.tables.applied if isinstance(each, DeleteRow)]


# --- look ----------------------------------------------------------------------------------------


def test_an_event_of_a_message_compares_all_its_attachments() -> None:
    scene = ground({MESSAGE: content(PDF, PNG)}, {PLACE: reference()})
    looked = scene.look(OF_MESSAGE)
    assert looked.examined == 2
    assert found(looked) == {reference_place(PNG): Kind.MISSING_ROW}


def test_an_event_of_a_reference_compares_it_with_its_message() -> None:
    scene = ground({MESSAGE: content(PNG)}, {PLACE: reference()})
    assert found(scene.look(Wake(PLACE.key, MESSAGE))) == {PLACE: Kind.EXTRA_ROW}


def test_an_attachment_of_two_messages_has_two_references() -> None:
    both: dict[KeyValue, Row] = {message: content(PDF) for message in (MESSAGE, OTHER)}
    scene = ground(both, {PLACE: reference()})
    looked = scene.look(OF_MESSAGE, Wake((None, str(OTHER)), OTHER))
    assert found(looked) == {reference_place(PDF, OTHER): Kind.MISSING_ROW}


def test_a_deleted_message_leads_nowhere() -> None:
    scene = ground(rows={PLACE: reference()})
    looked = scene.look(replace(OF_MESSAGE, deleted_from="messagev3", deleted_at=LONG_AGO))
    assert (found(looked), looked.again) == ({}, ())


# --- confirm and repair --------------------------------------------------------------------------


def test_a_missing_reference_is_added_with_the_time_of_its_list() -> None:
    scene = ground({MESSAGE: content(PDF)})
    (outcome,) = scene.settle(replace(suspect(Kind.MISSING_ROW), sources=frozenset({MESSAGE})))
    assert outcome.action is Action.REPAIR
    (write,) = scene.tables.applied
    assert write == SetCells(LISTING, PLACE, LONG_AGO, {"attachmentid": PDF})


def test_a_list_that_was_written_within_the_delay_is_not_judged() -> None:
    scene = ground({MESSAGE: content(PDF, at=NOW)})
    one = replace(suspect(Kind.MISSING_ROW), sources=frozenset({MESSAGE}))
    (outcome,) = scene.settle(one, after=DELAY - 1)
    assert outcome.action is Action.LOOK_AGAIN


def test_a_reference_that_its_message_does_not_name_is_removed_after_two_looks() -> None:
    scene = ground({MESSAGE: content(PNG)}, {PLACE: reference()})
    (outcome,) = scene.settle(replace(suspect(Kind.EXTRA_ROW), suspected=None))
    assert outcome.action is Action.LOOK_AGAIN
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    (write,) = scene.tables.applied
    assert write == DeleteRow(LISTING, PLACE, LONG_AGO)


def test_a_reference_to_a_message_that_is_gone_is_removed() -> None:
    scene = ground(rows={PLACE: reference()})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    assert removed(scene) == [PLACE]
    assert scene.finding.sentence == (
        f"attachment_references: attachment {PLACE.group} message {MESSAGE} is not in the truth;"
        " its message and its place in a mailbox are gone"
    )


def test_a_reference_to_a_message_that_still_exists_is_reported() -> None:
    scene = ground(rows={PLACE: reference()}, existing=frozenset({MESSAGE}))
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.ABSENT_WITHOUT_DELETE
    assert removed(scene) == []


def test_a_message_whose_tables_may_not_be_read_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = ground(rows={PLACE: reference()})

    def refuse(_scene: Ground, _sources: object) -> set[KeyValue]:
        raise Refused("no SELECT on imapuidtable")

    monkeypatch.setattr(Ground, "having_content", refuse)
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT
    assert removed(scene) == []


def test_a_newer_table_of_content_is_not_taken_for_an_absence() -> None:
    newer = bind(ATTACHMENT_REFERENCE, {**SCHEMA, "messagev4": SCHEMA["messagev3"]})
    scene = ground(rows={PLACE: reference()})
    scene.family = newer
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT


@pytest.mark.parametrize("text", ["abc", str(MESSAGE).upper().replace("1", "A")])
def test_a_reference_that_names_no_message_is_reported(text: str) -> None:
    slot = reference_place(PDF, text)
    scene = ground(rows={slot: reference(PDF, text)})
    (outcome,) = scene.settle(suspect(Kind.EXTRA_ROW, slot))
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.UNRESOLVED
    assert removed(scene) == []


def test_a_list_without_the_cell_that_dates_it_is_reported() -> None:
    scene = ground({MESSAGE: Row({"attachments": content(PDF).get("attachments")})})
    one = replace(suspect(Kind.MISSING_ROW), sources=frozenset({MESSAGE}))
    (outcome,) = scene.settle(one)
    assert outcome.action is Action.REPORT
    assert scene.finding.kind is Kind.INCOMPLETE_TRUTH_ROW


def test_a_list_that_james_could_not_load_is_a_finding_of_its_own() -> None:
    broken = Row({"attachments": '[{"id": null}]'})
    scene = ground({MESSAGE: broken, OTHER: content(PDF)}, {PLACE: reference()})
    looks = scene.looks([OF_MESSAGE, Wake((None, str(OTHER)), OTHER)])
    slots = {each.slot: each.kind for one in looks for each in one.suspects}
    assert slots == {
        REFERENCES.known_part(None, str(MESSAGE)): None,
        reference_place(PDF, OTHER): Kind.MISSING_ROW,
    }


# --- the declaration -----------------------------------------------------------------------------


def test_a_keyspace_without_the_older_table_reads_one() -> None:
    newer = {table: columns for table, columns in SCHEMA.items() if table != "messagev2"}
    family = bind(ATTACHMENT_REFERENCE, newer)
    assert family.truth.tables == ("messagev3",)
    assert family.wakes_on == ("messagev3", "attachmentmessageid")
    assert family.truth.contents == ("messagev3",)
    assert REFERENCES.truth.tables == ("messagev2", "messagev3")


def test_no_table_with_content_is_written() -> None:
    for table in ("messagev2", "messagev3"):
        with pytest.raises(NotGuarded):
            replace(LISTING, table=table)
