"""Steps 3 to 7 on fakes for a family whose key is a text and a UUID: no step knows a message."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from checkpoints.lineage_tables import LineageTables
from checkpoints.schema import STEPS
from checkpoints.schema.step import made_by, statements
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.declared.writes import DeleteRow, SetCells
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.finding import Action, State
from reconcilers.rows.memory import Entry
from reconcilers.words.key import text_of
from reconcilers.words.model import KeyValue, Kind, Slot, Suspect, Wake
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.person.decisions import RETRY, Desk
from streaming.commands.person.orders import Orders
from streaming.counters.mailboxes import chunks_of, mailboxes_of
from streaming.steps.look import LookResult
from streaming.topics.publish import suspect_record
from tests.builders.rights import BOB, EVE, LISTING, RIGHTS, SHARED, granted, place, shown
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, LONG_AGO, MOMENT, NOW

OWN = RIGHTS.key


def of_truth(user: str | None = BOB, **told: object) -> Wake:
    at = {"oldest": LONG_AGO, "from_truth": True}
    return replace(Wake((user, SHARED), SHARED), **(at | told))  # type: ignore[arg-type]


def deleted(table: str, user: str | None, source: KeyValue | None = None) -> Wake:
    return Wake((user, SHARED), source, LONG_AGO, deleted_from=table, deleted_at=LONG_AGO)


def found(looked: LookResult) -> dict[Slot, Kind | None]:
    return {each.slot: each.kind for each in looked.suspects}


# --- look ----------------------------------------------------------------------------------------


def test_a_grant_without_its_row_is_found_and_remembered() -> None:
    ground = Ground({SHARED: (granted(BOB), granted(EVE))}, {place(EVE): shown(EVE)})
    looked = ground.look(of_truth(BOB))
    assert found(looked) == {place(BOB): Kind.MISSING_ROW}
    assert {each.slot for each in ground.lineage.of_sources([SHARED])[SHARED]} == {
        place(BOB),
        place(EVE),
    }
    assert looked.changes == {BOB: 1}
    assert looked.touched == (place(BOB),)


def test_a_group_has_no_row() -> None:
    ground = Ground({SHARED: (granted("$staff"),)})
    assert found(ground.look(of_truth("$staff"))) == {}


def test_a_list_that_was_deleted_whole_is_resolved_by_what_is_remembered() -> None:
    ground = Ground({}, {place(BOB): shown(BOB), place(EVE): shown(EVE)})
    entries = [Entry(SHARED, place(each), True, LONG_AGO - 1) for each in (BOB, EVE)]
    ground.lineage.remember(entries)
    whole = replace(deleted("aclv2", None, SHARED), key=(None, None), from_truth=True)
    looked = ground.look(whole)
    assert found(looked) == dict.fromkeys([place(BOB), place(EVE)], Kind.EXTRA_ROW)
    for user in (BOB, EVE):
        deletes = ground.lineage.truth_deletes(SHARED, user)
        assert deletes.by_slot == {place(user): frozenset({LONG_AGO})}


def test_a_key_that_is_known_in_part_means_the_rows_that_it_fits() -> None:
    ground = Ground({SHARED: (granted(BOB),)})
    ground.lineage.remember([Entry(SHARED, place(BOB), True, NOW)])
    assert found(ground.look(Wake((BOB, None), None))) == {place(BOB): Kind.MISSING_ROW}
    assert found(ground.look(Wake((EVE, None), None))) == {}


def test_a_source_of_which_nothing_is_remembered_is_sought_in_the_group() -> None:
    ground = Ground({}, {place(BOB): shown(BOB), place(EVE): shown(EVE)})
    looked = ground.look(Wake((BOB, None), SHARED))
    assert ground.tables.scanned == [BOB]
    assert found(looked) == {place(BOB): Kind.EXTRA_ROW}


def test_deletes_are_remembered_by_what_they_named() -> None:
    ground = Ground()
    ground.look(deleted("aclv2", BOB, SHARED), deleted("usermailboxacl", EVE))
    assert ground.lineage.truth_deletes(SHARED, BOB).by_slot == {place(BOB): {LONG_AGO}}
    assert ground.lineage.projection_deletes(place(EVE)).received == {LONG_AGO}


def test_counters_hear_nothing_of_it() -> None:
    assert chunks_of(RIGHTS, [place().key], 1000) == {}
    assert mailboxes_of(RIGHTS, {BOB: 1}) == {}


# --- confirm, examine, repair --------------------------------------------------------------------


def suspect(kind: Kind) -> Suspect:
    return Suspect(place(), frozenset({SHARED}), kind, LISTING.name, LONG_AGO, suspected=kind)


def test_a_missing_row_is_added_and_told_in_the_family_s_words() -> None:
    ground = Ground({SHARED: (granted(),)})
    (outcome,) = ground.settle(suspect(Kind.MISSING_ROW))
    assert outcome.action is Action.REPAIR
    (write,) = ground.tables.applied
    assert isinstance(write, SetCells)
    assert (write.slot, dict(write.cells)) == (place(), {"rights": "lr"})
    assert ground.finding.sentence == (
        f"user_rights: user {BOB} mailbox {SHARED} is missing; the truth holds list {SHARED}"
    )
    assert (ground.finding.slot, ground.finding.source) == (place(), str(SHARED))
    assert [(each.key, each.source) for each in ground.published] == [(place().key, SHARED)]


def test_a_right_that_should_be_gone_is_removed_on_evidence() -> None:
    ground = Ground({}, {place(): shown()})
    ground.lineage.remember([Entry(SHARED, place(), True, LONG_AGO)])
    ground.lineage.remember_deletes([TruthDelete(SHARED, place().key, LONG_AGO + DELAY)])
    (outcome,) = ground.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPAIR
    (write,) = ground.tables.applied
    assert isinstance(write, DeleteRow)
    assert write.slot == place()


def test_without_evidence_it_is_reported_in_the_family_s_words() -> None:
    ground = Ground({}, {place(): shown()})
    ground.lineage.watch_from(LONG_AGO)
    ground.lineage.remember_deletes([ProjectionDelete(place(EVE), LONG_AGO)])
    (outcome,) = ground.settle(suspect(Kind.EXTRA_ROW))
    assert outcome.action is Action.REPORT
    assert ground.finding.sentence.startswith(
        "the truth does not have this mailbox, and no delete of the list in this user was received"
    )


def test_the_repair_is_seen_to_hold() -> None:
    ground = Ground({SHARED: (granted(),)})
    ground.settle(suspect(Kind.MISSING_ROW))
    ground.rows[place()] = shown()
    (outcome,) = ground.settle(suspect(Kind.MISSING_ROW))
    assert (outcome.action, outcome.ended) == (Action.CLOSE, State.VERIFIED)


# --- records, log, commands ----------------------------------------------------------------------


def test_the_log_names_it_by_its_columns() -> None:
    ground = Ground({SHARED: (granted(),)})
    ground.settle(suspect(Kind.MISSING_ROW))
    (line,) = ground.journal.log_at(MOMENT.began)
    named = {"username": BOB, "mailboxid": str(SHARED), "id": str(SHARED)}
    assert named.items() <= line.items()
    assert f'"username": "{BOB}"' in json.dumps(line["writes"])


def test_a_key_is_published_under_the_names_of_its_columns() -> None:
    key, value = suspect_record(RIGHTS, of_truth(None, suspected=Kind.EXTRA_ROW))
    assert key == f"None/{SHARED}".encode()
    told = json.loads(value)
    assert told["family"] == "rights"
    named = {"username": None, "id": str(SHARED), "mailboxid": str(SHARED)}
    assert named.items() <= told["wake"].items()
    assert told["wake"]["suspected"] == "extra_row"


@pytest.mark.parametrize("filtered", [FindingFilter(), FindingFilter(mailbox=SHARED)])
def test_a_person_decides_by_the_text_of_the_key(filtered: FindingFilter) -> None:
    ground = Ground({SHARED: (granted(),)})
    woken: list[tuple[str, Slot | None]] = []

    def publish(family: Family, wakes: Iterable[Wake]) -> None:
        woken.extend((family.name, wake.slot) for wake in wakes)

    ground.settle(suspect(Kind.MISSING_ROW))
    ground.journal.put(replace(ground.finding, state=State.STUCK))
    desk = Desk(ground.journal, publish, lambda: NOW, Orders("ana"), (RIGHTS,))
    assert desk.decide(RETRY, frozenset({"nobody/x"}), filtered) == 1
    assert desk.decide(RETRY, frozenset({text_of(place())}), filtered) == 0
    assert ground.finding.state is State.HELD
    assert woken == [("rights", place())]


# --- our own tables ------------------------------------------------------------------------------


def test_its_tables_of_memory_follow_from_its_declaration() -> None:
    made = dict(made_by(each) for each in statements(LineageTables(RIGHTS).cql, "mine"))
    key = {"username": "text", "mailboxid": "uuid"}
    entry = {"id": "uuid", **key, "seen": "boolean", "in_truth": "boolean"}
    entry |= {"recorded_at": "bigint", "had_at": "bigint"}
    at = {"deleted_at": "bigint"}
    assert made == {
        "lineage_by_list_listed": entry,
        "lineage_by_row_listed": entry,
        "truth_deletes_listed": {"id": "uuid", **key, **at},
        "projection_deletes_listed": {**key, **at, "sent_at": "bigint"},
        "user_deletes_listed": {"username": "text", **at},
        "expiries_listed": {"minute": "int", "due": "bigint", **key, "id": "uuid"},
    }


def test_every_family_that_is_remembered_has_its_tables_by_some_step() -> None:
    made = {made_by(each)[0] for step in STEPS for each in statements(step.cql, "mine")}
    for family in FAMILIES:
        if family.projections and family.remembered:
            wanted = {made_by(each)[0] for each in statements(LineageTables(family).cql, "mine")}
            assert wanted <= made, f"a step has to make the tables of {family.name}"


def test_the_tables_of_messages_are_those_that_their_declaration_names() -> None:
    made = {
        name: columns
        for step in STEPS
        for name, columns in map(made_by, statements(step.cql, "mine"))
    }
    ours = dict(made_by(each) for each in statements(LineageTables(MESSAGE).cql, "mine"))
    assert {name: made[name] for name in ours} == ours
