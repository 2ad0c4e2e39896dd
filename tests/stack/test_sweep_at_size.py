"""A sweep over 200,000 messages while users write: whatever no event told of is found, and no more.

Rows went wrong on three occasions: before anything was captured; where events were dropped on their
way; while the agent was dead, whose segments were deleted. One stack of this file's own.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from deploy.comparison.differences import message_differences
from deploy.comparison.indexes import index_differences
from deploy.comparison.snapshot import read_whole
from deploy.demo.incident import delete_finished
from deploy.demo.old_mail import end_segment
from deploy.embedded import Stack
from deploy.mailserver.filler import fill
from tests.conftest import make_mail_tables
from tests.endpoints import Running
from tests.stack import pasts
from tests.stack.mirror import Mirror
from tests.stack.pasts import Damage, Users, a_scene_with_a_past, places, repaired, unresolved
from tests.stack.scenes import Answer, Place, Scene, cells, create_topics, insertion
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

MESSAGES, MAILBOXES, OF_EACH = 200_000, 100, 5
OCCASIONS = ("before", "dropped", "dead")
RATE = 20.0
"""Operations a second of the users."""
DELAY = 10
"""No write of theirs is on its way for longer, on a busy machine too."""
INDEX = "deleted_uids"


@dataclass
class Large:
    """The keyspace, what copies its events to the stream, and what went wrong in it."""

    scene: Scene
    mirror: Mirror
    damage: dict[str, Damage] = field(
        default_factory=lambda: {each: Damage.of(OF_EACH) for each in OCCASIONS}
    )
    old: list[Place] = field(default_factory=lambda: places(OF_EACH))
    """Rows of messages that the truth never had, older than memory: it may have lost them."""
    young: list[Place] = field(default_factory=list)
    """Rows at a UID that the truth never had, of messages that were heard of at another UID."""
    proofs: list[Place] = field(default_factory=list)
    """Rows by which it was seen how far the stream had come."""


@pytest.fixture(scope="module")
def large(
    own_running: Running, own_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Large]:
    """A stream beside old mail; some of it went wrong, before."""
    stack, topic = own_running.endpoints, f"events_{uuid.uuid4().hex[:8]}"
    make_mail_tables(own_running, own_session, stack.keyspace)
    create_topics(stack, [topic])
    made: list[Large] = []
    with ExitStack() as held:

        def past(scene: Scene) -> None:
            fill(scene.session, scene.keyspace, MESSAGES, MAILBOXES)
            fill_index(scene)
            mirror = Mirror(stack, scene.keyspace, lambda _table: topic)
            made.append(Large(scene, held.enter_context(mirror)))
            made[0].damage["before"].plant(scene)

        changes: dict[str, dict[str, Any]] = {
            "kafka": {"topic_prefix": topic},
            "stream": {"delay": DELAY},
            "repair": {"projections": ["messages", INDEX], "recheck_interval": 600},
            "canary": {"lost_after": 5, "usual_delay": 60},
        }
        folder = tmp_path_factory.mktemp("large")
        for _ in a_scene_with_a_past(own_running, own_session, folder, changes, past):
            yield made[0]


def fill_index(scene: Scene) -> None:
    """The deleted UIDs of all messages."""
    rows = scene.execute("SELECT mailboxid, uid, flagdeleted FROM $projection")
    deleted = ((row.mailboxid, row.uid) for row in rows if row.flagdeleted)
    scene.execute_many(insertion("$mail.messagedeleted", ("mailboxid", "uid")), deleted)


@dataclass
class Swept:
    """The sweep, and the users who wrote all the while."""

    large: Large
    users: Users
    answer: Answer


@pytest.fixture(scope="module")
def swept(large: Large, own_stack: Stack) -> Swept:
    """All of it happens; the users go on until everything is right."""
    scene, users = large.scene, Users(large.scene, RATE)
    with users.at_work():
        drop_events(large)
        lose_segments(large, own_stack)
        # now the agent has caught up, and memory has begun anew
        large.proofs += scene.await_all_examined()
        add_young(large)
        heard = {place.row for each in large.damage.values() for place in each.places}
        assert not heard & repaired(scene)
        before = users.done
        answer = pasts.swept(scene, "--reason", "a test")
        assert users.done > before
        for each in large.damage.values():
            each.await_repaired(scene)
        until("what the truth never had is gone", lambda: not left(scene, large.young))
        until("what it may have lost is held", lambda: all(map(held(scene), large.old)))
    large.proofs += scene.await_all_examined()
    return Swept(large, users, answer)


def drop_events(large: Large) -> None:
    """Of these mailboxes no event ever comes; canaries and all others do."""
    scene, damage = large.scene, large.damage["dropped"]
    large.mirror.lost |= {str(place.mailboxid).encode() for place in damage.places}
    damage.plant(scene)
    write_unheard(large, large.old)


def add_young(large: Large) -> None:
    """Messages made since memory began, each with one more row in the listing, unheard of."""
    homes = places(OF_EACH)
    for home in homes:
        large.scene.write_both(home, cells())
    large.scene.await_remembered(homes)
    large.young += [replace(home, uid=home.uid + 1) for home in homes]
    write_unheard(large, large.young)


def write_unheard(large: Large, orphans: list[Place]) -> None:
    """Rows of the listing alone, of which no event tells."""
    large.mirror.lost |= {str(place.mailboxid).encode() for place in orphans}
    for place in orphans:
        large.scene.write_projection(place, {"messageid": place.messageid, **cells()})


def lose_segments(large: Large, stack: Stack) -> None:
    """The agent dies, users write on, and what it has not read is deleted."""
    scene, raw, damage = large.scene, stack.layout.cassandra / "cdc_raw", large.damage["dead"]
    until("canaries come back", partial(scene.metric, "reconciler_frontier_timestamp_seconds"))
    before = scene.metric("reconciler_losses_total")
    stack.kill_agent()
    damage.plant(scene)
    ids = [place.mailboxid.bytes for place in damage.places]
    until("it stands in a segment", lambda: holding(raw, ids))
    end_segment(scene.session)
    until("that is deleted", lambda: delete_finished(raw) >= 0 and not holding(raw, ids))
    stack.start_agent()
    until("it is known", lambda: scene.metric("reconciler_losses_total") > before)


def holding(raw: Path, ids: Iterable[bytes]) -> list[Path]:
    """The segments that hold a write to one of these mailboxes."""
    segments = [(each, each.read_bytes()) for each in raw.glob("CommitLog-*.log")]
    return [each for each, held in segments if any(mailbox in held for mailbox in ids)]


def test_everything_was_read_and_is_remembered(swept: Swept) -> None:
    told = swept.answer.stdout
    assert int(told.split()[0]) > 2 * MESSAGES
    assert "lineage is complete" in told
    assert "not read" not in told


@pytest.mark.parametrize("occasion", OCCASIONS)
def test_whatever_no_event_told_of_is_repaired(swept: Swept, occasion: str) -> None:
    assert swept.large.damage[occasion].left(swept.large.scene) == {}


def left(scene: Scene, orphans: Iterable[Place]) -> list[Place]:
    """Those that are still there."""
    return [each for each in orphans if not scene.lacks(each.row)]


def held(scene: Scene) -> Callable[[Place], bool]:
    """Whether a person is asked about a row that nobody can decide."""
    return lambda place: "ambiguous_range_delete" in scene.kinds(place.row)


def test_a_row_that_the_truth_never_had_is_removed(swept: Swept) -> None:
    assert left(swept.large.scene, swept.large.young) == []


@pytest.fixture(scope="module")
def decided(swept: Swept) -> Swept:
    """A person accepts what was held."""
    scene, old = swept.large.scene, swept.large.old
    assert left(scene, old) == old
    slots = [f"{place.mailboxid}/{place.uid}" for place in old]
    scene.succeed("findings", "--accept", *slots)
    until("they are gone", lambda: not left(scene, old))
    return swept


def test_a_row_that_the_truth_may_have_lost_stays_until_a_person_decides(decided: Swept) -> None:
    assert left(decided.large.scene, decided.large.old) == []


def test_nothing_else_was_repaired(swept: Swept) -> None:
    large, doubtful = swept.large, swept.users.in_doubt()
    planted = [place for each in large.damage.values() for place in each.places]
    wrong = {place.row for place in (*planted, *large.old, *large.young, *large.proofs)}
    assert repaired(large.scene) - wrong - doubtful == set()


def test_both_sides_agree_by_separate_code(decided: Swept) -> None:
    tables = read_whole(decided.large.scene.session, decided.large.scene.keyspace)
    assert list(message_differences(tables)) == []
    assert [each for each in index_differences(tables) if each.projection == INDEX] == []


def test_nothing_is_unresolved(swept: Swept) -> None:
    assert unresolved(swept.large.scene) == []
