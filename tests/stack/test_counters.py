"""Counters and quotas become exact, whatever was wrong; what is right is not touched.

A mailbox holds five messages, two of them unseen; its counters were broken in one way. All cases
are planted first, so that the three looks pass once.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from reconcilers.counters.drift import LIST_MAY_LACK_ROWS
from tests.stack.counted import SIZE, Counted
from tests.stack.recomputing import Recomputing
from tests.stack.scenes import Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

SEEN, UNSEEN = 3, 2
COUNT = SEEN + UNSEEN
RIGHT = (COUNT, UNSEEN)
LARGE = 600
"""More than a correction may be without a person."""

LONG_AGO = UUID("a2d3e000-44e5-11ea-8000-0123456789ab")
"""A mailbox of 2020: memory of it began later."""
OFTEN = 30
"""Passes of James's own repair."""

Break = Callable[[Counted], object]


def lost_increment(box: Counted) -> None:
    box.add(COUNT - 1, UNSEEN - 1)


def doubled_increment(box: Counted) -> None:
    box.add(COUNT + 1, UNSEEN + 1)


def negative(box: Counted) -> None:
    box.add(-3, -4)


def more_unseen_than_messages(box: Counted) -> None:
    box.add(COUNT, COUNT + 4)


def no_row(box: Counted) -> None:
    assert box.counters() is None


def deleted_and_incremented_again(box: Counted) -> None:
    box.add(COUNT + 7, UNSEEN + 7).drop_counters().add(1, 1)


BREAKS: tuple[Break, ...] = (
    lost_increment,
    doubled_increment,
    negative,
    more_unseen_than_messages,
    no_row,
    deleted_and_incremented_again,
)


@pytest.fixture(scope="module")
def boxes(counted_scene: Scene) -> dict[str, Counted]:
    """A mailbox for each case, and those that must not be corrected.

    Each is woken as soon as it is as it should be: an event that came out while the counter is
    observed already would leave it in doubt whether one message more is counted.
    """
    found: dict[str, Counted] = {}

    def box() -> Counted:
        return Counted(counted_scene).create().hold(SEEN, UNSEEN)

    def keep(name: str, made: Counted) -> None:
        made.touch()
        found[name] = made

    for each in BREAKS:
        broken = box()
        each(broken)
        keep(each.__name__, broken)
    keep("right", box().add(*RIGHT).add_quota(COUNT, COUNT * SIZE))
    keep("gone", Counted(counted_scene).hold(SEEN, UNSEEN))
    undecided = box().add(1, 1)
    for write in (counted_scene.write_truth, counted_scene.write_projection):
        write(undecided.places[0], cells(fullcontentoctets=None))
    keep("undecided", undecided)
    dateless = box().add(1, 1)
    for write in (counted_scene.write_truth, counted_scene.write_projection):
        write(dateless.places[0], cells(internaldate=None, flagseen=True))
    keep("dateless", dateless)
    old = Counted(counted_scene, mailboxid=LONG_AGO).create().hold(SEEN, UNSEEN)
    keep("old", old.add(COUNT + 1, UNSEEN + 1))
    keep("quota lost", box().add(*RIGHT).add_quota(COUNT - 2, (COUNT - 2) * SIZE))
    keep("quota doubled", box().add(*RIGHT).add_quota(COUNT + 1, (COUNT + 1) * SIZE))
    keep("quota negative", box().add(*RIGHT).add_quota(-1, -SIZE))
    keep("quota far off", box().add(*RIGHT).add_quota(COUNT + LARGE, (COUNT + LARGE) * SIZE))
    keep("no quota", box().add(*RIGHT))
    keep("recomputed", box().add(COUNT + 2, UNSEEN + 2))
    return found


@dataclass
class James:
    """Recomputes and resets one mailbox's counters, often, while ours makes its looks."""

    acting: Recomputing
    stop: threading.Event


@pytest.fixture(scope="module", autouse=True)
def james(counted_scene: Scene, boxes: dict[str, Counted]) -> Iterator[James]:
    mailboxid = boxes["recomputed"].mailboxid
    acting = Recomputing(counted_scene.session, counted_scene.keyspace, [mailboxid], 0.5, 1000)
    stop = threading.Event()
    thread = threading.Thread(target=acting.run, args=(stop,), daemon=True)
    thread.start()
    yield James(acting, stop)
    stop.set()
    thread.join()


@pytest.mark.parametrize("case", [each.__name__ for each in BREAKS])
def test_a_wrong_counter_becomes_exact(boxes: dict[str, Counted], case: str) -> None:
    box = boxes[case]
    until("the counters are right", lambda: box.counters() == RIGHT)
    box.await_verified()
    assert [each["state"] for each in box.findings()] == ["intended", "verified"]


@pytest.mark.parametrize("case", ["quota lost", "quota doubled", "quota negative"])
def test_a_wrong_quota_becomes_exact(boxes: dict[str, Counted], case: str) -> None:
    box = boxes[case]
    until("the quota is right", lambda: box.quota() == (COUNT, COUNT * SIZE))
    box.await_quota_verified()


def test_a_large_correction_waits_for_a_person(boxes: dict[str, Counted]) -> None:
    box = boxes["quota far off"]
    (held,) = until("it is held", box.quota_findings)
    assert (held["kind"], held["state"]) == ("large_correction", "held")
    assert box.quota() == (COUNT + LARGE, (COUNT + LARGE) * SIZE)


def test_a_message_that_nobody_has_decided_on_does_not_hold_up_its_counters(
    boxes: dict[str, Counted],
) -> None:
    """It has no size in the truth: its counters may be right with it, and without it."""
    box = boxes["undecided"]
    until("as right as is known", lambda: box.counters() == (COUNT - 1, UNSEEN))
    box.await_verified()
    assert box.counters() == (COUNT - 1, UNSEEN)


def test_a_message_that_lacks_the_same_cell_in_both_tables_is_counted(
    boxes: dict[str, Counted],
) -> None:
    """It has no date in either: a sum needs none."""
    box = boxes["dateless"]
    until("the counters are right", lambda: box.counters() == RIGHT)
    box.await_verified()


def test_a_counter_of_an_old_mailbox_is_lowered_after_a_full_comparison_only(
    counted_scene: Scene, boxes: dict[str, Counted]
) -> None:
    """It counts one more than is listed, as if a row had been lost long ago (review A2)."""
    box, too_high = boxes["old"], (COUNT + 1, UNSEEN + 1)
    (held,) = until("it is held", box.findings)
    assert held["state"] == "held"
    assert held["message"].endswith(LIST_MAY_LACK_ROWS.why)
    assert box.counters() == too_high
    counted_scene.mark_swept()
    until("the counters are right", lambda: box.counters() == RIGHT)


def test_what_is_right_or_gone_is_left_alone(
    counted_scene: Scene, boxes: dict[str, Counted]
) -> None:
    until("a counter was settled", boxes["lost_increment"].findings)
    until("a quota was settled", boxes["quota lost"].quota_findings)
    assert boxes["right"].counters() == RIGHT
    assert boxes["right"].quota() == (COUNT, COUNT * SIZE)
    assert boxes["gone"].counters() is None
    assert boxes["no quota"].quota() is None
    for case in ("right", "gone", "no quota"):
        assert not boxes[case].findings()
        assert not boxes[case].quota_findings()
    assert counted_scene.metric("reconciler_tally_looks_total", outcome="agrees") > 0


@pytest.fixture(scope="module")
def second_round(boxes: dict[str, Counted], james: James) -> None:
    """One counter is broken once more; until it is right again, others are only woken."""
    recomputed, right, other = (
        boxes[name] for name in ("recomputed", "right", "doubled_increment")
    )
    until("James has acted often", lambda: james.acting.passes >= OFTEN)
    james.stop.set()
    until("the first round is over", lambda: other.findings() and recomputed.counters() == RIGHT)
    before = len(other.findings())
    other.add(1, 0)
    for woken in (*[right] * 5, recomputed, other):
        woken.touch()
    until("the other is verified again", lambda: len(other.findings()) >= before + 2)
    assert other.counters() == RIGHT


@pytest.mark.usefixtures("second_round")
def test_james_repairs_counters_too_and_it_settles(boxes: dict[str, Counted]) -> None:
    box = boxes["recomputed"]
    assert box.counters() == RIGHT
    assert "intended" not in [each["state"] for each in box.findings()][-1:]


@pytest.mark.usefixtures("second_round")
def test_replayed_events_change_no_counter(boxes: dict[str, Counted]) -> None:
    assert boxes["right"].counters() == RIGHT
    assert not boxes["right"].findings()
