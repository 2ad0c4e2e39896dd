"""Histories of `copies`: every one of a few steps, and random ones. Both stop at a broken claim."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from tests.property.copies import LAYOUTS, ONE_RANGE, THREE, A, Agent, Layout, Name, Time, World
from tests.property.copies_heard import Claim, Margins, Rule

Claims = tuple[tuple[Claim, Rule], ...]
"""What is claimed, each by a rule."""

Step = Callable[[World], object]


@dataclass(frozen=True)
class Act:
    """One step, and its words."""

    said: str
    does: Step
    on: tuple[Name, ...] = ()

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True)
class Broken:
    """A counterexample: what happened, and what is wrong with that."""

    history: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"{'; '.join(self.history)}: {self.why}"


def played(layout: Layout, *steps: Step) -> World:
    """A history by hand. Agents that send have sent all of it at the end."""
    world = World.of(layout)
    for step in steps:
        world.tick()
        step(world)
    for _ in range(3):
        world.tick()
    return world


def never(names: Collection[Name]) -> bool:
    """The level of a write whose user is never told that it was done."""
    return False


# --- every history of a few steps ----------------------------------------------------------------


def writes() -> Iterator[Act]:
    """A write that reaches some of three replicas; one of those may be late by a step."""
    for number in range(len(THREE) + 1):
        for names in combinations(THREE, number):
            for late in (None, *(names if number > 1 else ())):
                by = {name: int(name == late) for name in names}
                words = f"write on {' '.join(names) or 'none'}" + (f", {late} late" if late else "")
                yield Act(words, partial(World.write, in_range=0, late=by), names)


def agents() -> Iterator[Act]:
    for name in THREE:
        yield Act(f"{name} {STOPS}", partial(World.stop, name=name), (name,))
        yield Act(f"{name} {SKIPS}", partial(World.skip, name=name), (name,))
        yield Act(f"{name} {GOES_ON}", partial(World.go_on, name=name), (name,))
        yield Act(f"{name} is replaced", partial(emptied, name=name), (name,))


STOPS, SKIPS, GOES_ON = "stops", "skips", "goes on"
DOES = {STOPS: Agent.STOPPED, SKIPS: Agent.SKIPS, GOES_ON: Agent.SENDS}


def emptied(world: World, name: Name) -> None:
    """Replaced; each of its ranges is streamed from the first of the other replicas."""
    sources = {
        number: next(each for each in names if each != name)
        for number, names in enumerate(world.layout.ranges)
        if name in names
    }
    world.replace(name, sources)


def hints() -> Iterator[Act]:
    for name in THREE:
        yield Act(f"hint to {name}", partial(hinted, name=name), (name,))


def hinted(world: World, name: Name) -> None:
    for write in range(len(world.writes)):
        world.hint(write, name)


def reads() -> Iterator[Act]:
    for names in combinations(THREE, 2):
        yield Act(f"read of {' '.join(names)}", partial(World.read, in_range=0, names=names), names)


LATE_BY_ONE = Margins(takes=1)


@dataclass
class Search:
    """All histories of so many acts of each sort; the claim is tested after each step.

    A history that differs from another one in the names of its nodes only is left out.
    """

    claims: Claims
    tried: int = 0

    def run(self, *budget: tuple[Iterable[Act], int]) -> Broken | None:
        """The first history that breaks one of the claims."""
        return self._after(World.of(ONE_RANGE), (), [(tuple(acts), n) for acts, n in budget], 0)

    def _after(
        self,
        before: World,
        history: tuple[str, ...],
        budget: Sequence[tuple[tuple[Act, ...], int]],
        used: int,
    ) -> Broken | None:
        for at, (acts, left) in enumerate(budget):
            if not left:
                continue
            rest = [*budget[:at], (acts, left - 1), *budget[at + 1 :]]
            for act in acts:
                now_used = _used(act.on, used)
                if now_used is None or not _changes(before, act):
                    continue
                found = self._with(before, act, history, rest, now_used)
                if found is not None:
                    return found
        return None

    def _with(
        self,
        before: World,
        act: Act,
        history: tuple[str, ...],
        rest: Sequence[tuple[tuple[Act, ...], int]],
        used: int,
    ) -> Broken | None:
        world = before.copy()
        world.tick()
        act.does(world)
        self.tried += 1
        told = (*history, act.said)
        if why := wrong(world, self.claims, LATE_BY_ONE):
            return Broken(told, why)
        if _some_unheard(world) and (why := wrong(_all_go_on(world), self.claims, LATE_BY_ONE)):
            return Broken((*told, "all go on"), why)
        return self._after(world, told, rest, used)


def wrong(world: World, claims: Claims, margins: Margins) -> str:
    """What breaks one of these claims; empty if nothing does."""
    for claim, rule in claims:
        if why := claim(world, rule, margins):
            return f"{why} ({claim.__name__}, {rule.__name__})"
    return ""


def _some_unheard(world: World) -> bool:
    return len(world.heard) < len(world.writes)


def _used(names: Sequence[Name], used: int) -> int | None:
    """How many nodes are named by now; None if a node is skipped that is like an earlier one."""
    new = [name for name in names if THREE.index(name) >= used]
    return used + len(new) if new == list(THREE[used : used + len(new)]) else None


def _changes(world: World, act: Act) -> bool:
    """Whether an agent that is told something does not do that already."""
    wanted = next((agent for words, agent in DOES.items() if act.said.endswith(words)), None)
    return wanted is None or world.nodes[act.on[0]].agent is not wanted


def _all_go_on(world: World) -> World:
    """A copy in which agents that lose something go on, and time passes."""
    later = world.copy()
    for name, node in later.nodes.items():
        if node.agent is Agent.SKIPS:
            later.go_on(name)
    for _ in range(4):
        later.tick()
    return later


# --- random histories ----------------------------------------------------------------------------

TAKES = 3
"""Most ticks between the beginning and the acknowledgement of a random write."""

Draw = Callable[[World, random.Random], None]


def a_write(world: World, rng: random.Random) -> None:
    """It reaches some replicas, late or not; a third of all have no answer in time."""
    number = rng.randrange(len(world.layout.ranges))
    names = world.layout.ranges[number]
    reached = rng.sample(names, rng.randint(0, len(names)))
    late = {name: rng.choice((0, 0, rng.randint(0, TAKES))) for name in reached}
    world.write(number, late, never if rng.random() < 1 / 3 else None)


def a_read(world: World, rng: random.Random) -> None:
    number = rng.randrange(len(world.layout.ranges))
    names = rng.sample(world.layout.ranges[number], len(world.layout.ranges[number]))
    for some in range(1, len(names) + 1):
        if world.layout.enough(names[:some]):
            world.read(number, names[:some])
            return


def a_hint(world: World, rng: random.Random) -> None:
    if world.writes:
        write = rng.randrange(len(world.writes))
        world.hint(write, rng.choice(world.layout.ranges[world.writes[write].range]))


def an_agent(world: World, rng: random.Random) -> None:
    name = rng.choice(tuple(world.nodes))
    rng.choice((world.stop, world.skip, world.go_on, world.go_on))(name)


def a_replacement(world: World, rng: random.Random) -> None:
    name = rng.choice(tuple(world.nodes))
    others = {
        number: rng.choice([each for each in names if each != name])
        for number, names in enumerate(world.layout.ranges)
        if name in names
    }
    world.replace(name, others)


def a_repair(world: World, rng: random.Random) -> None:
    world.repair(rng.randrange(len(world.layout.ranges)))


def a_logged_repair(world: World, rng: random.Random) -> None:
    world.repair_through_the_log(rng.randrange(len(world.layout.ranges)))


def a_crash_of_one(world: World, rng: random.Random) -> None:
    world.crash(A)


USUAL: tuple[Draw, ...] = (*(a_write, a_read, an_agent) * 4, a_hint, a_hint, a_replacement)
"""What happens in random histories, each in proportion."""


@dataclass(frozen=True)
class Bet:
    """Claims to be tried in random histories, each in one of the layouts."""

    claims: Claims
    acts: tuple[Draw, ...] = USUAL
    layouts: tuple[Layout, ...] = tuple(LAYOUTS.values())
    steps: int = 24

    def broken(self, seed: int) -> str:
        """What breaks the claim in the history of this seed; empty if nothing does."""
        rng = random.Random(seed)
        world, skew = World.of(self.layouts[seed % len(self.layouts)]), rng.choice((0, 0, 1, 2))
        for node in world.nodes.values():
            node.ahead = rng.randint(-skew, skew)
        margins = Margins(TAKES, skew)
        for _ in range(self.steps):
            world.tick()
            rng.choice(self.acts)(world, rng)
            if why := wrong(world, self.claims, margins):
                return f"seed {seed}, tick {world.now}: {why}"
        why = wrong(_all_go_on(world), self.claims, margins)
        return f"seed {seed}, at the end: {why}" if why else ""

    def first(self, seeds: Iterable[int]) -> str:
        """The first counterexample; empty if there is none."""
        return next((why for seed in seeds if (why := self.broken(seed))), "")


def lengths(seed: int, *rules: Rule) -> list[Time]:
    """Of how many ticks everything is known after a random history, by each of these rules."""
    rng, world = random.Random(seed), World.of(ONE_RANGE)
    for _ in range(24):
        world.tick()
        rng.choice(USUAL)(world, rng)
    spans = [rule(world.layout, world.nodes, Margins(TAKES)) for rule in rules]
    return [max(until - since, 0) for since, until in spans]
