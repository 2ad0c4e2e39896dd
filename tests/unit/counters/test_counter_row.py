"""Whose a counter is: owners are read once and again, and two tables may disagree on them."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch
from uuid import uuid4

import pytest

from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Deferred, Unreachable
from reconcilers.words.model import Kind, Slot
from streaming.counters.counter_row import CounterRow, CounterRows, Owners
from tests.builders.counters import (
    BOB,
    EVE,
    FAMILIES,
    OF_BOB,
    OF_MAILBOX,
    OTHER,
    CounterTables,
)
from tests.builders.rows import MAILBOX, NOW


def tables() -> CounterTables:
    """Bob has two mailboxes."""
    made = CounterTables()
    made.give(MAILBOX, BOB)
    made.give(OTHER, BOB)
    return made


def finding(of: CounterRow) -> Finding:
    return Finding(
        family=of.family,
        projection=of.tally.name,
        slot=of.slot,
        source=None if of.root is None else str(of.root),
        kind=Kind.COUNTER_DRIFT,
        state=State.HELD,
        sentence="",
        found_at=NOW,
    )


# --- subjects ------------------------------------------------------------------------------------


def test_a_mailbox_that_changes_concerns_its_counters_and_its_users_quota() -> None:
    assert list(CounterRows(FAMILIES, Owners(tables())).of_mailbox(MAILBOX)) == [OF_MAILBOX, OF_BOB]


def test_a_mailbox_that_does_not_exist_concerns_no_user() -> None:
    assert list(CounterRows(FAMILIES, Owners(CounterTables())).of_mailbox(MAILBOX)) == [OF_MAILBOX]


def test_a_deleted_mailbox_still_concerns_the_user_whose_it_was() -> None:
    made = tables()
    owners = Owners(made)
    owners.root_of(MAILBOX)
    made.give(MAILBOX, None)
    assert list(CounterRows(FAMILIES, owners).of_mailbox(MAILBOX)) == [OF_MAILBOX, OF_BOB]


@pytest.mark.parametrize("subject", [OF_MAILBOX, OF_BOB])
def test_a_finding_leads_back_to_its_subject(subject: CounterRow) -> None:
    assert list(CounterRows(FAMILIES, Owners(tables())).of_finding(finding(subject))) == [subject]


def test_a_root_whose_user_has_an_ampersand_in_the_name_is_found_again() -> None:
    root = replace(BOB, user="b&b")
    subject = replace(OF_BOB, key=str(root), root=root)
    assert list(CounterRows(FAMILIES, Owners(tables())).of_finding(finding(subject))) == [subject]


def test_a_finding_of_a_tally_that_is_switched_off_leads_nowhere() -> None:
    off = replace(finding(OF_BOB), projection="gone")
    assert list(CounterRows(FAMILIES, Owners(tables())).of_finding(off)) == []


def test_findings_stand_at_the_counter_s_own_key() -> None:
    of_eve = replace(OF_BOB, key=str(EVE), root=EVE)
    keys = {OF_BOB.slot, of_eve.slot, OF_MAILBOX.slot}
    assert keys == {Slot(str(OF_BOB.root)), Slot(str(EVE)), Slot(MAILBOX)}


def test_a_sentence_names_the_mailbox_or_the_root() -> None:
    assert str(OF_MAILBOX) == f"mailbox {MAILBOX}"
    assert str(OF_BOB) == "quota root #private&bob"


# --- owners --------------------------------------------------------------------------------------


def test_an_owner_is_read_once() -> None:
    made = tables()
    owners = Owners(made)
    owners.root_of(MAILBOX)
    made.fails["owner"] = Unreachable("no host answered")
    assert owners.root_of(MAILBOX) == BOB


def test_a_users_mailboxes_are_those_that_both_tables_name() -> None:
    assert Owners(tables()).mailboxes(OF_BOB) == {MAILBOX, OTHER}


def test_a_mailbox_that_does_not_exist_is_none() -> None:
    assert Owners(CounterTables()).mailboxes(OF_MAILBOX) == frozenset()


def test_a_path_that_names_a_mailbox_of_nobody_is_in_doubt() -> None:
    made = tables()
    del made.owners[OTHER]
    with pytest.raises(Deferred, match=str(OTHER)):
        Owners(made).mailboxes(OF_BOB)


def test_a_path_that_names_a_mailbox_of_somebody_else_is_in_doubt() -> None:
    made = tables()
    made.owners[OTHER] = EVE
    with pytest.raises(Deferred, match=str(OTHER)):
        Owners(made).mailboxes(OF_BOB)


def test_a_mailbox_that_no_path_names_is_in_doubt_and_stays_so() -> None:
    made = tables()
    made.paths[BOB].discard(OTHER)
    owners = Owners(made)
    owners.root_of(OTHER)  # it has changed
    for _ in range(2):
        with pytest.raises(Deferred, match=str(OTHER)):
            owners.mailboxes(OF_BOB)


def test_reading_again_before_a_correction_does_not_forget_what_no_path_names() -> None:
    made = tables()
    made.paths[BOB].discard(OTHER)
    owners = Owners(made)
    owners.root_of(OTHER)
    owners.read_again(OF_BOB)
    with pytest.raises(Deferred, match=str(OTHER)):
        owners.mailboxes(OF_BOB)


@pytest.mark.parametrize("subject", [OF_MAILBOX, OF_BOB])
def test_a_process_that_has_not_counted_yet_may_read_again_too(subject: CounterRow) -> None:
    owners, asked = Owners(tables()), Owners(tables())
    owners.read_again(subject)
    assert owners.mailboxes(subject) == asked.mailboxes(subject)


def test_a_deleted_mailbox_leaves_no_doubt() -> None:
    made = tables()
    owners = Owners(made)
    assert owners.mailboxes(OF_BOB) == {MAILBOX, OTHER}
    made.give(OTHER, None)
    assert owners.mailboxes(OF_BOB) == {MAILBOX}


def test_a_mailbox_that_was_given_away_leaves_no_doubt() -> None:
    made = tables()
    owners = Owners(made)
    of_eve = replace(OF_BOB, key=str(EVE), root=EVE)
    owners.mailboxes(OF_BOB)
    made.give(OTHER, EVE)
    assert owners.mailboxes(of_eve) == {OTHER}
    assert owners.mailboxes(OF_BOB) == {MAILBOX}


@pytest.mark.parametrize("subject", [OF_MAILBOX, OF_BOB])
def test_before_a_correction_a_deleted_mailbox_is_noticed(subject: CounterRow) -> None:
    made = tables()
    owners = Owners(made)
    before = owners.mailboxes(subject)
    made.give(MAILBOX, None)
    owners.read_again(subject)
    assert owners.mailboxes(subject) == before - {MAILBOX}


def test_memory_is_bounded() -> None:
    made = tables()
    with patch("streaming.counters.counter_row.OWNERS_KNOWN", 2):
        owners = Owners(made)
        for _ in range(5):
            each = uuid4()
            made.give(each, EVE)
            owners.root_of(each)
        owners.root_of(MAILBOX)
        owners.read_again(OF_BOB)
        assert owners.mailboxes(OF_BOB) == {MAILBOX, OTHER}


def test_no_more_owners_are_known_than_may_be() -> None:
    made = tables()
    with patch("streaming.counters.counter_row.OWNERS_KNOWN", 2):
        owners = Owners(made)
        assert [owners.root_of(each) for each in (MAILBOX, OTHER)] == [BOB, BOB]
        made.give(MAILBOX, EVE)
        assert owners.root_of(MAILBOX) == BOB
        owners.root_of(uuid4())
        assert owners.root_of(MAILBOX) == EVE
