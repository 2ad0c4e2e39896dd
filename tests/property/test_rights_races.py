"""A right is changed while it is repaired: no history of a change and a repair is left out.

Every difference, every change of the list, every point at which the event and the write to the
rows may fall into a batch, every outcome of our write and of the mail server's, clocks apart.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from reconcilers.declared.family import Family
from reconcilers.declared.writes import AddToSet, DeleteRow, SetCells
from reconcilers.rows.confirm import Moment, judge
from reconcilers.rows.plan import plan
from reconcilers.words.model import Kind, Report
from streaming.steps import examine
from tests.builders.rights import FROM_EVENTS, LISTED
from tests.builders.rows import DELAY, SECOND
from tests.property import seeded
from tests.property.rights_world import (
    OTHER_LIST,
    Climate,
    List,
    Point,
    Sent,
    World,
    of_lists,
    of_users,
)

ANA = "ana"
CLIMATES = (
    Climate(late=31 * SECOND),
    Climate(22 * SECOND, -22 * SECOND, 22 * SECOND),
    Climate(-22 * SECOND, 22 * SECOND, 22 * SECOND),
)
"""Equal clocks, and clocks as far apart as is allowed (D/2)."""
BASE: List = OTHER_LIST
DIFFERENCES: Mapping[Kind, tuple[tuple[List, ...], List]] = {
    Kind.MISSING_ROW: (({**BASE, ANA: "lr"},), {}),
    Kind.DIFFERING_CELLS: (({**BASE, ANA: "lr"},), {ANA: "lw"}),
    Kind.EXTRA_ROW: (({**BASE, ANA: "lr"}, BASE), {ANA: "lr"}),
    Kind.ABSENT_WITHOUT_DELETE: ((BASE,), {ANA: "lr"}),
}
"""The lists that there were, and the row that ANA has; the last: no list has ever named her."""
CHANGES: Mapping[str, List] = {
    "grants": {**BASE, ANA: "lrw"},
    "restricts": {**BASE, ANA: "l"},
    "revokes": BASE,
    "revokes all": {},
    "grants to another": {**BASE, "bob": "l"},
}


WRITTEN = {FROM_EVENTS.name: of_users, LISTED.name: of_lists}
"""What James's subscribers write for each family."""


@dataclass(frozen=True)
class History:
    """A difference, and one change of the list during a batch of its repair."""

    family: Family
    kind: Kind
    change: str
    event: Point
    write: Point
    batch: int
    climate: Climate
    ours: Sent
    theirs: Sent


def points() -> Iterator[tuple[Point, Point]]:
    for event, write in product(Point, Point):
        if event.value <= write.value:
            yield event, write


def histories(family: Family) -> Iterator[History]:
    for kind, change, (event, write), batch, climate in product(
        DIFFERENCES, CHANGES, points(), (1, 2), CLIMATES
    ):
        for ours, theirs in product(Sent, Sent):
            if (ours is Sent.APPLIED) or (theirs is Sent.APPLIED):
                yield History(family, kind, change, event, write, batch, climate, ours, theirs)


def planted(history: History) -> World:
    """The difference as old as an hour, of which the stream hears now."""
    world = World(history.family, WRITTEN[history.family.name])
    lists, row = DIFFERENCES[history.kind]
    for each in lists:
        world.change(each)
    for name, rights in {**BASE, **row}.items():
        world.tell({}, {name: rights})
    world.ground.now += 3600 * SECOND
    world.touched.clear()
    world.climate, world.ours = history.climate, history.ours
    return world


def played(history: History) -> World:
    world = planted(history)
    new, told = CHANGES[history.change], list[List]()

    def stop(point: Point) -> None:
        if world.batches == history.batch and point is history.event and not told:
            told.append(world.change(new))
        if world.batches == history.batch and point is history.write and len(told) == 1:
            told.append(new)
            world.tell(told[0], new, history.theirs)
        world.promises_hold()

    world.stop = stop
    while world.batches < history.batch and world.batch():
        pass
    world.batches = history.batch
    for point in Point:  # those that it did not reach
        stop(point)
    world.rest()
    world.promises_hold()
    assert world.stuck() <= world.unnamed(), "promise 5: it is stuck"
    return world


def sample(family: Family, number: int) -> list[History]:
    """So many of its histories."""
    return random.Random(number).sample(list(histories(family)), number)


EACH_FAMILY = pytest.mark.parametrize("family", [FROM_EVENTS, LISTED], ids=lambda each: each.name)


@EACH_FAMILY
def test_a_change_stands_wherever_it_falls_into_a_repair(family: Family) -> None:
    met: Counter[object] = Counter()
    for history in sample(family, 700):
        world = held(history)
        met.update({type(write) for _, write in world.writes})
        met[len(world.writes)] += 1
    adds = AddToSet if family is LISTED else SetCells
    rare = {each: met[each] for each in (adds, DeleteRow, 1, 2) if met[each] < 20}
    assert not rare, met


@pytest.mark.long(part="races")
@EACH_FAMILY
def test_no_history_is_left_out(family: Family) -> None:
    for history in histories(family):
        held(history)


def held(history: History) -> World:
    """Play it; a history that does not hold is named."""
    try:
        return played(history)
    except AssertionError as broken:
        broken.add_note(str(replace(history, family=FROM_EVENTS)))
        raise


# --- several changes, by several servers, whose writes overtake each other ------------------------

LISTS: tuple[List, ...] = (*CHANGES.values(), {**BASE, ANA: "w", "bob": "l"})


def lived(family: Family, seed: int) -> World:
    """Up to four changes of a list at any points of its repairs."""
    chance = random.Random(seed)
    world = planted(replace(next(histories(family)), kind=chance.choice(list(DIFFERENCES))))
    changes, untold = [chance.choice(LISTS) for _ in range(chance.randint(2, 4))], []

    def stop(_point: Point) -> None:
        world.climate = chance.choice(CLIMATES)
        if changes and chance.random() < 0.2:
            new = changes.pop()
            untold.append((world.change(new), new))
        elif untold and chance.random() < 0.4:
            world.tell(*untold.pop(chance.randrange(len(untold))), chance.choice(list(Sent)))
        elif chance.random() < 0.1:
            world.ours = chance.choice(list(Sent))
        world.promises_hold()

    world.stop = stop
    while changes or untold:
        if not world.batch():
            world.ground.now += chance.randint(1, 2 * DELAY)
            stop(Point.LATER)
    world.stop = lambda _point: None
    world.rest()
    world.promises_hold()
    world.stuck()
    return world


def lived_each(family: Family, seeds: Iterable[int]) -> Iterator[World]:
    def of_seed(seed: int) -> World:
        return lived(family, seed)

    return seeded.played(of_seed, seeds)


@EACH_FAMILY
def test_several_changes_become_the_newest_list(family: Family) -> None:
    """But where three repairs in a row were lost or overtaken: that waits for a person."""
    worlds = list(lived_each(family, range(200)))
    assert sum(len(world.writes) > 2 for world in worlds) > 20
    assert sum(bool(world.stuck() - world.unnamed()) for world in worlds) < 4


@pytest.mark.long(part="races")
@EACH_FAMILY
def test_many_more_of_them_become_the_newest_list(family: Family) -> None:
    for _ in lived_each(family, range(1_000, 11_000)):
        pass


# --- the guards, broken on purpose ---------------------------------------------------------------


def written_now(*arguments: Any) -> Any:
    """Repairs stamped with the time of the repair, as an ordinary client would."""
    planned, moment = plan(*arguments), arguments[3]
    if isinstance(planned, Report):
        return planned
    return tuple(replace(write, at=moment.began) for write in planned)


def judged_at_once(*arguments: Any) -> Any:
    """Nothing is ever young: what is on its way is taken for missing."""
    family, projection, seen, moment, accepted = arguments
    later = Moment(moment.began + 2 * moment.delay, moment.delay)
    return judge(family, projection, seen, later, accepted)


def breaks(family: Family, promise: str, histories: int) -> bool:
    asked = [partial(played, each) for each in sample(family, histories)]
    return seeded.breaks(lambda number: asked[number](), range(len(asked)), promise)


@EACH_FAMILY
def test_a_wrong_write_is_noticed(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "plan", written_now)
    assert breaks(family, "promise 2", 2_000)


@EACH_FAMILY
def test_write_times_guard_even_what_is_judged_at_once(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is always written before its rows, so that a row cannot be newer than its list."""
    monkeypatch.setattr(examine, "judge", judged_at_once)
    assert not breaks(family, "promise 2", 500)


@EACH_FAMILY
def test_a_removal_that_is_never_sent_is_noticed(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(projection: Any, seen: Any, difference: Any, *rest: Any) -> Any:
        removes = difference.kind is Kind.EXTRA_ROW
        return (
            Report(Kind.UNGUARDABLE, "") if removes else plan(projection, seen, difference, *rest)
        )

    monkeypatch.setattr(examine, "plan", kept)
    assert breaks(family, "promise 5", 500)
