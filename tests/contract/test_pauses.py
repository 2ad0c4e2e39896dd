"""The contract of pauses: the same for the fake and for Cassandra."""

import uuid
from contextlib import suppress
from dataclasses import replace

import pytest

from checkpoints.cassandra import CassandraPauses, Store
from checkpoints.pauses import Pauses, Resumed
from reconcilers.limits.pause import PILOT, Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.limits.write_target import ALL, REMOVALS
from tests.contract.making import a_name
from tests.fakes.checkpoints.pauses import MemoryPauses
from tests.fakes.dying_store import DyingStore
from tests.fakes.schema_store import Killed

AT = 1_800_000_000_000_000
PAUSE = Pause(ALL, AT, "alice", "a look; it's odd", until=AT + 3_600_000_000)
REMOVING = Pause(REMOVALS, AT + 1, "bob", "")
BY = Resumed(AT + 5, "carol", "it was nothing")


@pytest.fixture
def pauses(real: Store | None) -> Pauses:
    return MemoryPauses() if real is None else CassandraPauses(real, a_name("james"))


def test_nothing_is_paused_at_first(pauses: Pauses) -> None:
    assert pauses.standing() == ()
    assert pauses.history() == ()


def test_a_pause_stands_until_it_is_ended_and_is_kept(pauses: Pauses) -> None:
    pauses.begin(REMOVING)
    pauses.begin(PAUSE)
    assert pauses.standing() == (PAUSE, REMOVING)
    pauses.end(PAUSE, BY)
    assert pauses.standing() == (REMOVING,)
    assert pauses.history() == ((PAUSE, BY), (REMOVING, None))


def test_two_things_paused_at_one_moment_are_two_pauses(pauses: Pauses) -> None:
    other = replace(PAUSE, what="messages")
    pauses.begin(PAUSE)
    pauses.begin(other)
    pauses.end(other, BY)
    assert pauses.standing() == (PAUSE,)


def test_a_pilot_is_kept_with_what_it_names(pauses: Pauses) -> None:
    everything = Pilot(
        users=frozenset({"bob", "o'brien"}),
        mailboxes=frozenset({uuid.uuid1(), uuid.uuid1()}),
        systems=frozenset({"messages"}),
        kinds=frozenset({"missing_row"}),
    )
    kept = (
        replace(PAUSE, what=PILOT, asked_at=AT + 1, pilot=everything),
        replace(PAUSE, what=PILOT, asked_at=AT + 2, pilot=Pilot(users=frozenset({"bob"}))),
    )
    for each in kept:
        pauses.begin(each)
    assert pauses.standing() == kept
    pauses.end(kept[0], BY)
    assert pauses.history() == ((kept[0], BY), (kept[1], None))


def test_what_replaces_another_stands_alone(pauses: Pauses) -> None:
    first, second, third = (replace(PAUSE, what=PILOT, asked_at=AT + at) for at in (2, 3, 4))
    pauses.begin(REMOVING)
    pauses.replace([], first, BY)
    assert pauses.standing() == (REMOVING, first)
    pauses.begin(second)
    for _ in range(2):
        pauses.replace([first, second], third, BY)
        assert pauses.standing() == (REMOVING, third)
        assert pauses.history() == ((REMOVING, None), (first, BY), (second, BY), (third, None))


@pytest.mark.parametrize("lives", [1, 2])
def test_killed_anywhere_one_of_the_two_stands(
    reconciler_keyspace: str, request: pytest.FixtureRequest, lives: int
) -> None:
    store = DyingStore(request.getfixturevalue("cassandra"), reconciler_keyspace, lives)
    pauses = CassandraPauses(store, a_name("james"))
    before, after = (replace(PAUSE, what=PILOT, asked_at=AT + at) for at in (2, 3))
    pauses.begin(before)
    with suppress(Killed):
        pauses.replace([before], after, BY)
    assert pauses.standing() == (before if lives == 1 else after,)


def test_the_same_again_is_one_and_ended_twice_is_ended(pauses: Pauses) -> None:
    pauses.begin(PAUSE)
    pauses.begin(PAUSE)
    assert pauses.standing() == (PAUSE,)
    pauses.end(PAUSE, BY)
    pauses.end(PAUSE, replace(BY, who="dave"))
    assert pauses.standing() == ()
    assert pauses.history() == ((PAUSE, replace(BY, who="dave")),)


def test_a_pause_that_is_begun_again_by_a_lost_answer_stays_ended(pauses: Pauses) -> None:
    pauses.begin(PAUSE)
    pauses.end(PAUSE, BY)
    pauses.begin(PAUSE)
    assert pauses.standing() == ()
