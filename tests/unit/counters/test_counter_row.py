"""Whose a counter is: owners are read once and again, and two tables may disagree on them."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch
from uuid import uuid4

import pytest

from reconcilers.declared.tally import QuotaRoot
from reconcilers.rows.finding import Finding
from reconcilers.words.errors import Deferred, Unreachable
from reconcilers.words.model import Slot
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
from tests.builders.found import finding_of
from tests.builders.rows import MAILBOX


def tables() -> CounterTables:
    """Bob has two mailboxes."""
    made = CounterTables()
    made.give(MAILBOX, BOB)
    made.give(OTHER, BOB)
    return made


def finding(of: CounterRow) -> Finding:
    return finding_of(of, source=None if of.root is None else str(of.root))


# --- subjects ------------------------------------------------------------------------------------


def test_a_mailbox_that_changes_concerns_its_counters_and_its_users_quota() -> None:
    assert list(CounterRows(FAMILIES, Owners(tables())).of_mailbox(MAILBOX)) == [OF_MAILBOX, OF_BOB]


def test_a_mailbox_that_does_not_exist_concerns_no_user() -> None:
    assert list(CounterRows(FAMILIES, Owners(CounterTables())).of_mailbox(MAILBOX)) == [OF_MAILBOX]


@pytest.fixture
def made() -> CounterTables:
    return tables()


def test_a_deleted_mailbox_still_concerns_the_user_whose_it_was(made: CounterTables) -> None:
    owners = Owners(made)
    owners.root_of(MAILBOX)
    made.give(MAILBOX, None)
    assert list(CounterRows(FAMILIES, owners).of_mailbox(MAILBOX)) == [OF_MAILBOX, OF_BOB]


BOTH_NAMES = replace(BOB, user="b&b")


@pytest.mark.parametrize(
    "subject", [OF_MAILBOX, OF_BOB, replace(OF_BOB, key=str(BOTH_NAMES), root=BOTH_NAMES)], ids=str
)
def test_a_finding_leads_back_to_its_subject(subject: CounterRow) -> None:
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


def test_an_owner_is_read_once(made: CounterTables) -> None:
    owners = Owners(made)
    owners.root_of(MAILBOX)
    made.fails["owner"] = Unreachable("no host answered")
    assert owners.root_of(MAILBOX) == BOB


def test_a_users_mailboxes_are_those_that_both_tables_name() -> None:
    assert Owners(tables()).mailboxes(OF_BOB) == {MAILBOX, OTHER}


def test_a_mailbox_that_does_not_exist_is_none() -> None:
    assert Owners(CounterTables()).mailboxes(OF_MAILBOX) == frozenset()


@pytest.mark.parametrize("owner", [None, EVE], ids=["nobody", "somebody else"])
def test_a_path_that_names_a_mailbox_of_another_owner_is_in_doubt(
    made: CounterTables, owner: QuotaRoot | None
) -> None:
    del made.owners[OTHER]
    if owner is not None:
        made.owners[OTHER] = owner
    with pytest.raises(Deferred, match=str(OTHER)):
        Owners(made).mailboxes(OF_BOB)


@pytest.mark.parametrize("again", [False, True], ids=["looked at", "read again"])
def test_a_mailbox_that_no_path_names_is_in_doubt_and_stays_so(
    made: CounterTables, again: bool
) -> None:
    made.paths[BOB].discard(OTHER)
    owners = Owners(made)
    owners.root_of(OTHER)  # it has changed
    for _ in range(2):
        if again:
            owners.read_again(OF_BOB)
        with pytest.raises(Deferred, match=str(OTHER)):
            owners.mailboxes(OF_BOB)


@pytest.mark.parametrize("subject", [OF_MAILBOX, OF_BOB])
def test_a_process_that_has_not_counted_yet_may_read_again_too(subject: CounterRow) -> None:
    owners, asked = Owners(tables()), Owners(tables())
    owners.read_again(subject)
    assert owners.mailboxes(subject) == asked.mailboxes(subject)


def test_a_deleted_mailbox_leaves_no_doubt(made: CounterTables) -> None:
    owners = Owners(made)
    assert owners.mailboxes(OF_BOB) == {MAILBOX, OTHER}
    made.give(OTHER, None)
    assert owners.mailboxes(OF_BOB) == {MAILBOX}


def test_a_mailbox_that_was_given_away_leaves_no_doubt(made: CounterTables) -> None:
    owners = Owners(made)
    of_eve = replace(OF_BOB, key=str(EVE), root=EVE)
    owners.mailboxes(OF_BOB)
    made.give(OTHER, EVE)
    assert owners.mailboxes(of_eve) == {OTHER}
    assert owners.mailboxes(OF_BOB) == {MAILBOX}


@pytest.mark.parametrize("subject", [OF_MAILBOX, OF_BOB])
def test_before_a_correction_a_deleted_mailbox_is_noticed(
    made: CounterTables, subject: CounterRow
) -> None:
    owners = Owners(made)
    before = owners.mailboxes(subject)
    made.give(MAILBOX, None)
    owners.read_again(subject)
    assert owners.mailboxes(subject) == before - {MAILBOX}


def test_memory_is_bounded(made: CounterTables) -> None:
    with patch("streaming.counters.counter_row.OWNERS_KNOWN", 2):
        owners = Owners(made)
        for _ in range(5):
            each = uuid4()
            made.give(each, EVE)
            owners.root_of(each)
        owners.root_of(MAILBOX)
        owners.read_again(OF_BOB)
        assert owners.mailboxes(OF_BOB) == {MAILBOX, OTHER}


def test_no_more_owners_are_known_than_may_be(made: CounterTables) -> None:
    with patch("streaming.counters.counter_row.OWNERS_KNOWN", 2):
        owners = Owners(made)
        assert [owners.root_of(each) for each in (MAILBOX, OTHER)] == [BOB, BOB]
        made.give(MAILBOX, EVE)
        assert owners.root_of(MAILBOX) == BOB
        owners.root_of(uuid4())
        assert owners.root_of(MAILBOX) == EVE
