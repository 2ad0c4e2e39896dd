"""A user with 10,000 shared mailboxes, a mailbox shared with 1,000 users: what is read for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.no_lineage import NoLineage
from reconcilers.declared import access_rights
from reconcilers.declared.family import Family
from reconcilers.words.model import Slot, Suspect, Wake
from streaming.settings import CassandraSettings
from streaming.steps.confirm import Confirmer
from streaming.steps.look import Look
from streaming.steps.looks import KEYS_A_LOOK, Looks
from streaming.steps.removals import EXAMINED, PARTS, Removals, between
from streaming.steps.repair import CONFIRMED_TOGETHER
from streaming.tables import Tables
from streaming.tables.tables import KEYS_PER_READ
from tests.builders.rights import BOB, FROM_EVENTS, LISTED, SHARED, event
from tests.builders.rows import NOW
from tests.fakes.counting_session import CountingSession

MAILBOXES, USERS, MIN_ROWS = 10_000, 1_000, 10
NAMES = [f"user{number:04}" for number in range(USERS)]


def mailbox(number: int) -> UUID:
    return UUID(int=number << 96 | 0x1000_8000_000000000000)


def events(mailboxid: UUID, *lists: Mapping[str, str]) -> list[dict[str, Any]]:
    pairs = zip([{}, *lists], lists, strict=False)
    told = (event(number, *both) for number, both in enumerate(pairs))
    return [
        {"aggregateid": str(mailboxid), "eventid": number, "event": text}
        for number, text in enumerate(told)
    ]


def tables(
    family: Family, stored: Mapping[str, Mapping[Any, Any]]
) -> tuple[Tables, CountingSession]:
    session = CountingSession(stored)
    return Tables(cast(Session, session), CassandraSettings(), family), session


def looked(family: Family, given: Tables, wakes: Iterable[Wake]) -> list[Suspect]:
    looks = Looks(Look(family, given, NoLineage()))
    return [each for found in looks.at(wakes, NOW) for each in found.suspects]


def most_often(session: CountingSession, table: str) -> int:
    """How often the partition was read that was read most."""
    asked = Counter(key for each in session.asked(table) for key in each.partitions)
    return max(asked.values())


SHARED_LIST = {"eventstore": {str(SHARED): events(SHARED, dict.fromkeys(NAMES, "lr"))}}
OF_LIST = {
    FROM_EVENTS.name: Wake((None, SHARED), SHARED, from_truth=True),
    LISTED.name: Wake((SHARED, None), SHARED, from_truth=True),
}


@pytest.mark.parametrize("family", [FROM_EVENTS, LISTED], ids=lambda each: each.name)
def test_one_event_with_a_thousand_names_reads_its_list_once(family: Family) -> None:
    table = family.listing.table
    given, session = tables(family, {**SHARED_LIST, table: {}})
    suspects = looked(family, given, [OF_LIST[family.name]])
    assert len(suspects) == USERS
    (of_list,) = session.asked("eventstore")
    assert of_list.rows == 1
    rows = session.asked(table)
    if family is LISTED:  # one partition, a hundred names at a time
        assert len(rows) == USERS // KEYS_PER_READ
    else:  # each user's row is in a partition of its own
        assert len(rows) == USERS
    assert sum(each.rows for each in rows) == 0


def test_rows_that_are_there_are_read_twice_at_most() -> None:
    """By the names of the list, and as the partition that an event leads to."""
    rows = [{"id": SHARED, "key": name, "rights": {"l", "r"}} for name in NAMES]
    given, session = tables(LISTED, {**SHARED_LIST, "aclv2": {SHARED: rows}})
    assert looked(LISTED, given, [OF_LIST[LISTED.name]]) == []
    assert sum(each.rows for each in session.asked("aclv2")) == 2 * USERS


def test_ten_thousand_lists_of_one_user_are_read_once_each() -> None:
    ids = [mailbox(number) for number in range(MAILBOXES)]
    lists = {str(each): events(each, {BOB: "lr"}) for each in ids}
    rows = [{"username": BOB, "mailboxid": each, "rights": "lr"} for each in ids[1:]]
    given, session = tables(FROM_EVENTS, {"eventstore": lists, "usermailboxacl": {BOB: rows}})
    wakes = [Wake((BOB, each), each) for each in ids]
    (missing,) = looked(FROM_EVENTS, given, wakes)
    assert missing.slot == Slot(BOB, ids[0])
    assert len(session.asked("eventstore")) == MAILBOXES // KEYS_PER_READ
    assert most_often(session, "eventstore") == 1
    of_user = session.asked("usermailboxacl")
    assert len(of_user) == MAILBOXES // KEYS_PER_READ
    assert sum(each.rows for each in of_user) == MAILBOXES - 1
    assert KEYS_A_LOOK < MAILBOXES


@pytest.mark.parametrize("family", [FROM_EVENTS, LISTED], ids=lambda each: each.name)
def test_a_list_is_read_once_for_each_hundred_suspects(family: Family) -> None:
    given, session = tables(family, {**SHARED_LIST, family.listing.table: {}})
    suspects = looked(family, given, [OF_LIST[family.name]])
    session.reads.clear()
    confirmer = Confirmer(family, family.listing, given, NoLineage())
    for begin in range(0, USERS, CONFIRMED_TOGETHER):
        confirmer.read(suspects[begin : begin + CONFIRMED_TOGETHER])
    assert len(session.asked("eventstore")) == USERS // CONFIRMED_TOGETHER


def test_before_a_removal_a_part_of_a_user_s_mailboxes_is_read_once() -> None:
    ids = [mailbox(number) for number in range(MAILBOXES)]
    lists = {str(each): events(each, {BOB: "lr"}) for each in ids}
    rows = [{"username": BOB, "mailboxid": each, "rights": "lr"} for each in ids]
    given, session = tables(FROM_EVENTS, {"eventstore": lists, "usermailboxacl": {BOB: rows}})
    removals = Removals(FROM_EVENTS, FROM_EVENTS.listing, given, MIN_ROWS)
    for _ in range(3):
        assert removals.may_lose_rows(BOB)
    assert len(session.asked("usermailboxacl")) == PARTS
    assert sum(each.rows for each in session.asked("usermailboxacl")) <= 2 * EXAMINED + 1
    assert sum(len(each.partitions) for each in session.asked("eventstore")) <= EXAMINED


def test_before_a_removal_from_a_list_its_events_are_read_once() -> None:
    rows = [{"id": SHARED, "key": name, "rights": {"l"}} for name in NAMES]
    given, session = tables(LISTED, {**SHARED_LIST, "aclv2": {SHARED: rows}})
    assert Removals(LISTED, LISTED.listing, given, MIN_ROWS).may_lose_rows(SHARED)
    assert len(session.asked("eventstore")) == 1


@pytest.mark.parametrize("lost", [range(4_000, 5_200), range(9_900, MAILBOXES), range(1_200)])
def test_a_period_whose_lists_are_gone_is_noticed_among_ten_thousand(lost: range) -> None:
    ids = [mailbox(number) for number in range(MAILBOXES)]
    lists = {str(ids[each]): events(ids[each], {BOB: "lr"}) for each in range(MAILBOXES)}
    for each in lost:
        del lists[str(ids[each])]
    rows = [{"username": BOB, "mailboxid": each, "rights": "lr"} for each in ids]
    given, _ = tables(FROM_EVENTS, {"eventstore": lists, "usermailboxacl": {BOB: rows}})
    assert not Removals(FROM_EVENTS, FROM_EVENTS.listing, given, MIN_ROWS).may_lose_rows(BOB)


def test_parts_begin_at_equal_distances_in_time() -> None:
    first, last = mailbox(0), mailbox(9_000)
    parts = [each.time for each in between(first, last, 8) if isinstance(each, UUID)]
    assert parts == [1_000 * number for number in range(1, 9)]
    assert {each.version for each in between(first, last, 8)} == {1}  # type: ignore[union-attr]
    assert list(between("a", "z", 8)) == []
    assert list(between(0, 9, 8)) == [*range(1, 9)]


def test_a_history_of_a_thousand_lists_is_checked_once_for_each_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each event has two whole lists: a million entries."""
    checked = Counter[str]()
    name, letters = access_rights._name, access_rights._letters
    for each, check in (("_name", name), ("_letters", letters)):
        monkeypatch.setattr(access_rights, each, _counted(checked, each, check))
    lists: list[dict[str, str]] = []
    for each in NAMES[:300]:
        lists.append({**(lists[-1] if lists else {}), each: "lr"})
    given, _ = tables(FROM_EVENTS, {"eventstore": {str(SHARED): events(SHARED, *lists)}})
    (rows,) = given.truth_rows([SHARED]).values()
    assert len(rows) == 300
    assert checked == {"_name": 300, "_letters": 1}


def _counted(checked: Counter[str], name: str, check: Any) -> Any:
    def count(value: object) -> Any:
        checked[name] += 1
        return check(value)

    return count
