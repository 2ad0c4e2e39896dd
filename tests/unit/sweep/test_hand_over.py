"""Suspects are handed over: at a pace, waited for, and told of in the end."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from checkpoints.bookmarks import Bookmark, Positions
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.finding import State
from reconcilers.words.errors import Unreachable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, ProjectionSlot, Slot, Suspect, Wake
from streaming.again.hand_over import (
    COMES_BACK_WITHIN,
    GONE,
    NOT_JUDGED,
    WAITS_FOR_TABLE,
    HandOver,
    LiveStream,
    SuspectPace,
)
from tests.builders.found import finding_at, suspect_at
from tests.builders.rows import MAILBOX, NOW
from tests.fakes.checkpoints.memory import MemoryJournal

TOPIC = "suspects"
PLACE = (TOPIC, 0)


@dataclass
class Scene:
    """A stream that settles ``speed`` records at each wait, while it runs."""

    running: bool = True
    speed: int = 10
    published: list[Wake] = field(default_factory=list)
    settled: int = 0
    waits: list[float] = field(default_factory=list)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    asked: list[int] = field(default_factory=list)
    at_each_wait: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        stream = LiveStream(
            TOPIC,
            self.publish,
            self.ends,
            self.bookmark,
            running=lambda: self.running,
            waiting=self.waiting,
            judged_within=60,
        )
        pace = SuspectPace(suspects_per_minute=1_000, removals_per_minute=100)
        self.made = HandOver(MESSAGE, stream, self.journal, pace, self.wait, self.clock)

    def publish(self, wakes: Iterable[Wake]) -> None:
        self.published += wakes

    def clock(self) -> Micros:
        return NOW + round(sum(self.waits) * 1_000_000)

    def ends(self) -> Positions:
        return {PLACE: len(self.published)}

    def waiting(self, places: Collection[ProjectionSlot]) -> set[ProjectionSlot]:
        self.asked.append(len(places))
        waiting = {(wake.projection, wake.key) for wake in self.published[self.settled :]}
        return {(name, slot) for name, slot in places if (name, slot.key) in waiting}

    def bookmark(self) -> Bookmark:
        return Bookmark("stream", {PLACE: self.settled})

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.settled = min(self.settled + self.speed, len(self.published))
        if len(self.waits) > 1_000:
            raise AssertionError("it waits for ever")
        for happens in self.at_each_wait:
            happens()


def test_a_stream_of_the_commands_own_settles_them_as_long_as_it_runs() -> None:
    scene, own = Scene(running=False), [True]
    scene.made.settled_by(lambda: own[0])
    scene.made.publish([suspect_at(1)])
    assert scene.made.settled()
    own[0], scene.speed = False, 0
    waited = len(scene.waits)
    scene.made.publish([suspect_at(uid) for uid in range(2, 99)])
    assert not scene.made.settled()
    scene.made.until_verified()
    assert scene.made.finish().waits
    assert len(scene.waits) == waited, "it does not come back"


def test_they_come_back_as_what_was_found_at_a_look_before() -> None:
    scene = Scene()
    scene.made.publish([suspect_at(1, Kind.EXTRA_ROW)])
    (wake,) = scene.published
    assert (wake.looked_again, wake.suspected, wake.projection) == (
        True,
        Kind.EXTRA_ROW,
        "messages",
    )


@pytest.mark.parametrize(("kind", "seconds"), [(Kind.MISSING_ROW, 120), (Kind.EXTRA_ROW, 1_200)])
def test_they_come_at_half_of_what_opens_a_breaker(kind: Kind, seconds: float) -> None:
    scene = Scene()
    scene.made.publish([suspect_at(uid, kind) for uid in range(1_000)])
    assert sum(scene.waits) == pytest.approx(seconds)


@pytest.mark.parametrize(("limit", "most"), [(12, 6), (1, 1), (10_000, 50)])
def test_so_few_are_published_at_once_that_no_breaker_opens(limit: int, most: int) -> None:
    scene, sizes = Scene(), list[int]()
    pace = SuspectPace(suspects_per_minute=100_000, removals_per_minute=limit)
    scene.made.pace = pace
    scene.at_each_wait.append(lambda: sizes.append(len(scene.published)))
    scene.made.publish([suspect_at(uid, Kind.EXTRA_ROW) for uid in range(101)])
    added = [after - before for before, after in pairwise([*sizes, 101])]
    assert max(added) == most
    assert len(scene.published) == 101


def test_where_no_stream_runs_they_wait_for_one_and_nobody_for_them() -> None:
    scene = Scene(running=False)
    scene.made.publish([suspect_at(uid) for uid in range(1_000)])
    assert not scene.made.settled()
    closing = scene.made.finish()
    assert closing.waiting == 1_000
    assert list(closing.lines()) == [
        "1000 suspects wait in topic suspects: `reconcile stream` examines them when it runs;"
        " --settle runs one meanwhile"
    ]
    assert not scene.waits


def test_what_was_left_unresolved_is_handed_over_and_nothing_else() -> None:
    scene = Scene()
    unresolved = finding_at(1, Kind.UNRESOLVED, State.REPORTED)
    for each in (
        unresolved,
        replace(unresolved, projection="gone"),
        finding_at(2, state=State.HELD),
    ):
        scene.journal.put(each)
    scene.made.revisit()
    assert [(wake.slot, wake.looked_again) for wake in scene.published] == [
        (Slot(MAILBOX, 1), True)
    ]
    scene.journal.close(unresolved, State.HEALED, NOW)
    assert list(scene.made.finish().lines()) == [f"messages: unresolved: 1 seen: 1 {GONE}"]


def test_without_any_there_is_nothing_to_wait_for() -> None:
    scene = Scene(running=False)
    scene.made.publish([])
    assert scene.made.settled()
    assert list(scene.made.finish().lines()) == []


def test_what_an_ended_process_handed_over_is_waited_for_as_well() -> None:
    scene = Scene(speed=1)
    scene.published += [Wake((MAILBOX, uid), None) for uid in range(30)]
    scene.made.resume(30, NOW - 1)
    assert scene.made.settled()
    assert scene.settled >= 30


def test_what_an_ended_process_handed_over_waits_where_no_stream_runs() -> None:
    scene = Scene(running=False)
    scene.published += [Wake((MAILBOX, uid), None) for uid in range(30)]
    scene.made.resume(30, NOW - 1)
    assert not scene.made.settled()
    assert scene.made.finish().waiting == 30


@pytest.mark.parametrize(("comes_back", "settled"), [(True, True), (False, False)])
def test_a_stream_that_is_started_again_is_waited_for(*, comes_back: bool, settled: bool) -> None:
    scene = Scene(speed=0)
    scene.made.publish([suspect_at(1)])
    goes_at = len(scene.waits) + 3

    def away_for_a_minute() -> None:
        scene.running = len(scene.waits) < goes_at
        if comes_back and len(scene.waits) > goes_at + 60:
            scene.running, scene.speed = True, 10

    scene.at_each_wait.append(away_for_a_minute)
    assert scene.made.settled() is settled
    assert len(scene.waits) < goes_at + 2 * COMES_BACK_WITHIN


def test_it_is_settled_when_the_stream_has_passed_the_last_one() -> None:
    scene = Scene(speed=1)
    scene.made.publish([suspect_at(uid) for uid in range(30)])
    assert scene.made.settled()
    assert scene.settled >= 30


def test_it_tells_what_became_of_each() -> None:
    scene = Scene()
    scene.made.publish([suspect_at(uid) for uid in range(5)])
    scene.journal.put(finding_at(0, state=State.INTENDED))
    scene.journal.put(finding_at(1, state=State.HELD))
    scene.journal.put(finding_at(2, state=State.REPORTED))
    verified = finding_at(3, state=State.INTENDED)
    scene.journal.put(verified)
    scene.journal.close(verified, State.VERIFIED, scene.clock() + 1)
    assert scene.made.finish().endings == {
        ("messages", "missing_row"): {"repaired": 2, "held": 1, "reported": 1, GONE: 1}
    }


def test_before_its_own_stream_ends_repairs_are_seen_to_hold() -> None:
    scene = Scene(speed=1)
    scene.made.publish([suspect_at(0)])
    intended = finding_at(0, state=State.INTENDED)
    scene.journal.put(intended)
    waited = len(scene.waits)

    def verified_at_the_fifth() -> None:
        if len(scene.waits) == waited + 5:
            scene.journal.close(intended, State.VERIFIED, scene.clock() + 1)

    scene.at_each_wait.append(verified_at_the_fifth)
    scene.made.until_verified()
    assert len(scene.waits) >= waited + 5
    assert scene.made.finish().endings == {("messages", "missing_row"): {"repaired": 1}}


def test_what_was_verified_before_it_was_handed_over_is_not_its_doing() -> None:
    scene = Scene()
    before = finding_at(3, state=State.INTENDED)
    scene.journal.put(before)
    scene.journal.close(before, State.VERIFIED, NOW - 1)
    scene.made.publish([suspect_at(3)])
    assert scene.made.finish().endings == {("messages", "missing_row"): {GONE: 1}}


def with_an_orphan_put_off(looks: int) -> Scene:
    """It is handed over; the stream can judge it only after so many waits."""
    scene, orphan = Scene(speed=1), suspect_at(1, Kind.EXTRA_ROW)
    put_off(scene, orphan, until=lambda: len(scene.waits) > looks)
    scene.made.publish([orphan])
    return scene


def put_off(scene: Scene, orphan: Suspect, until: Callable[[], bool]) -> None:
    """At each look the stream publishes it again, as what it cannot judge yet."""

    def and_again() -> None:
        if scene.settled >= len(scene.published) and not until():
            scene.published.append(orphan.wake(orphan.kind))
        elif until() and scene.journal.recall(MESSAGE, "messages", [orphan.slot]) == {}:
            scene.journal.put(finding_at(1, Kind.EXTRA_ROW))

    scene.at_each_wait.append(and_again)


def test_one_that_is_put_off_is_not_called_gone() -> None:
    scene = with_an_orphan_put_off(looks=40)
    assert scene.made.finish().endings == {("messages", "extra_row"): {"repaired": 1}}


def test_one_that_is_put_off_for_long_is_told_as_what_it_is() -> None:
    scene, orphan = Scene(speed=1), suspect_at(1, Kind.EXTRA_ROW)
    put_off(scene, orphan, until=lambda: False)
    scene.made.publish([orphan])
    closing = scene.made.finish()
    assert closing.endings == {("messages", "extra_row"): {NOT_JUDGED: 1}}
    assert closing.waits
    assert 120 < sum(scene.waits) < 130
    scene.made.finish()
    assert sum(scene.waits) < 130, "it is waited for once"


def test_its_own_stream_ends_only_when_what_was_put_off_is_seen_to_hold() -> None:
    scene = with_an_orphan_put_off(looks=40)
    slot = Slot(MAILBOX, 1)

    def and_verified() -> None:
        found = scene.journal.recall(MESSAGE, "messages", [slot]).get(slot)
        if len(scene.waits) > 60 and found is not None and found.state is State.INTENDED:
            scene.journal.close(found, State.VERIFIED, scene.clock() + 1)

    scene.at_each_wait.append(and_verified)
    scene.made.until_verified()
    assert len(scene.waits) > 60


def test_a_stream_that_is_away_for_a_moment_is_waited_for() -> None:
    scene = with_an_orphan_put_off(looks=40)

    def away_for_ten() -> None:
        scene.running = not 10 < len(scene.waits) < 20

    scene.at_each_wait.append(away_for_ten)
    assert scene.made.finish().endings == {("messages", "extra_row"): {"repaired": 1}}


def test_where_kafka_does_not_answer_it_is_asked_again() -> None:
    scene = with_an_orphan_put_off(looks=10)
    answers, fails = scene.waiting, [True, True]

    def waiting(places: Collection[ProjectionSlot]) -> set[ProjectionSlot]:
        if fails:
            fails.pop()
            raise Unreachable("no broker leads it")
        return answers(places)

    scene.made.stream = replace(scene.made.stream, waiting=waiting)
    assert scene.made.finish().endings == {("messages", "extra_row"): {"repaired": 1}}


def test_only_what_is_put_off_is_asked_for_again() -> None:
    scene, orphan = Scene(speed=1_000), suspect_at(1, Kind.EXTRA_ROW)
    put_off(scene, orphan, until=lambda: len(scene.waits) > 10)
    scene.made.publish([*(suspect_at(uid) for uid in range(2, 99)), orphan])
    scene.made.finish()
    assert scene.asked[0] == 98
    assert set(scene.asked[1:]) == {1}
    nothing = Scene()
    nothing.made.finish()
    assert nothing.asked == []


def test_what_waits_for_a_table_that_refuses_is_told_so_and_not_waited_for() -> None:
    scene = Scene()
    refuses = finding_at(WHOLE_TABLE, Kind.TABLE_REFUSES, State.REPORTED)
    scene.journal.put(refuses)
    put_off(scene, suspect_at(1), until=lambda: False)
    scene.made.publish([suspect_at(1), suspect_at(2)])
    closing = scene.made.finish()
    assert closing.endings == {("messages", "missing_row"): {WAITS_FOR_TABLE: 2}}
    assert closing.waits
    assert not scene.asked
