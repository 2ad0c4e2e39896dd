"""What a frontier by quorum would remove, over the model of three copies (`copies_heard`).

A message has row 0, which the observer has seen, and a copy in the same mailbox. Its user expunges
the copy. The delete of the truth takes both rows, and does not say which was meant. The observer
removes row 0 of the listing if it received the delete and has never heard of the copy, neither
from the truth nor from the listing (the third rule of docs/removals.md). That is wrong here.

The mail server lists the copy once the write of its truth was acknowledged. Thus a copy that its
user can expunge is an acknowledged write: a failed write that `nodetool repair` spreads does no
harm to removals. A crash does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from itertools import combinations, product

import pytest

from tests.property.copies import THREE, A, Agent, B, C, Layout, Name, ReadRepair, World, quorum
from tests.property.copies_heard import Margins, Rule, cautious, joint, lowest, with_one_more
from tests.property.copies_histories import never

TRUTH, LISTING = 0, 1
LAYOUT = Layout((THREE, THREE), quorum(3))
CREATED = 1
AFTER = 2
"""How much newer the frontier is than the delete, in ticks: D of the product."""

SOME = [names for number in (1, 2, 3) for names in combinations(THREE, number)]
PAIRS = list(combinations(THREE, 2))


class Server(Enum):
    """Whether the mail server waits for the truth's answer before it lists a copy."""

    WAITS = auto()
    LISTS_ANYWAY = auto()


def repaired(world: World) -> None:
    world.repair(TRUTH)
    world.repair(LISTING)


def replaced(world: World) -> None:
    world.replace(A, {TRUTH: C, LISTING: C})


def crashed(world: World) -> None:
    world.crash(A)


def nothing(world: World) -> None:
    pass


Event = Callable[[World], None]


@dataclass(frozen=True)
class Story:
    """A copy is written to some replicas, listed on some, shown by two, and expunged.

    ``event`` happens before the read or after it. ``agents`` are as from the beginning.
    """

    truth: tuple[Name, ...]
    listing: tuple[Name, ...]
    read: tuple[Name, ...]
    agents: tuple[Agent, ...]
    event: Event = nothing
    before: bool = True
    repair: ReadRepair = ReadRepair.BLOCKING

    def wrong(self, rules: tuple[Rule, ...], server: Server = Server.WAITS) -> str:
        """By which of the rules row 0 is removed; empty if by none or if nothing is expunged."""
        world = World.of(LAYOUT)
        for name, agent in zip(THREE, self.agents, strict=True):
            world.nodes[name].agent = agent
        world.tick()
        if not self._copied(world, server):
            return ""
        heard_of = {0, 1} & world.heard
        if heard_of or 2 not in world.heard:
            return ""
        for rule in rules:
            since, until = rule(world.layout, world.nodes, Margins(takes=1))
            if since <= CREATED and until > world.writes[2].begun + AFTER:
                return f"{rule.__name__}: {self}"
        return ""

    def _copied(self, world: World, server: Server) -> bool:
        copy = world.write(TRUTH, dict.fromkeys(self.truth, 0))
        if world.writes[copy].acked is None and server is Server.WAITS:
            return False
        listed = world.write(LISTING, dict.fromkeys(self.listing, 0))
        order = (self.event, self._shown) if self.before else (self._shown, self.event)
        for step in order:
            step(world)
            world.tick()
        if world.writes[listed].shown is None:
            return False
        self._expunged(world)
        for _ in range(AFTER + 3):
            world.tick()
        return True

    def _shown(self, world: World) -> None:
        world.read(LISTING, self.read, self.repair)

    def _expunged(self, world: World) -> None:
        world.write(TRUTH, dict.fromkeys(THREE, 0))
        world.write(LISTING, dict.fromkeys(THREE, 0), never)


def stories(*events: Event) -> Iterator[Story]:
    """All of them, with each of these events before the read and after it."""
    for truth, listing, read, agents, event, before in product(
        SOME, SOME, PAIRS, product(Agent, repeat=3), (nothing, *events), (True, False)
    ):
        yield Story(truth, listing, read, agents, event, before)


def first(told: Iterator[Story], *rules: Rule, server: Server = Server.WAITS) -> str:
    return next((why for each in told if (why := each.wrong(rules, server))), "")


def test_removals_are_right_whatever_agents_and_repair_do() -> None:
    """By each of the rules: the copy was acknowledged, so a log that is read has it."""
    assert not first(stories(repaired, replaced), lowest, joint, cautious)
    unrepaired = (replace(each, repair=ReadRepair.NONE) for each in stories())
    assert not first(unrepaired, lowest, joint, cautious)


@pytest.mark.parametrize("rule", [joint, cautious])
def test_a_rule_with_one_replica_more_removes_what_its_user_kept(rule: Rule) -> None:
    assert first(stories(), with_one_more(rule))


@pytest.mark.parametrize("rule", [joint, cautious])
def test_a_crash_and_an_agent_that_is_down_would_remove_what_its_user_kept(rule: Rule) -> None:
    """The third replica missed both writes. The lowest node waits for the agent that is down."""
    agents = (Agent.SENDS, Agent.STOPPED, Agent.SENDS)
    story = Story((A, B), (A, B), (A, B), agents, crashed, before=False)
    assert story.wrong((rule,))
    assert not first(stories(crashed), lowest)


@pytest.mark.parametrize("rule", [joint, cautious])
def test_a_server_that_lists_what_failed_would_lose_a_row_to_repair(rule: Rule) -> None:
    """Only the order of the mail server's writes makes repair harmless."""
    told = partial(stories, repaired)
    assert first(told(), rule, server=Server.LISTS_ANYWAY)
    assert not first(told(), lowest, server=Server.LISTS_ANYWAY)
