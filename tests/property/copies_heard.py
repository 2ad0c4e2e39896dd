"""Rules by which an observer takes writes for received, and what they claim. See `copies`.

A rule says of which time everything is known: since a time, until a time. Memory begins anew at
the former; the latter is the frontier. It uses what canaries show, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from tests.property.copies import Enough, Layout, Name, Node, Span, Time, World

NEVER = 1 << 40


@dataclass(frozen=True)
class Margins:
    """How long a write takes until it is acknowledged, and how far a clock may be off."""

    takes: Time = 0
    skew: Time = 0


Known = tuple[Time, Time]
Rule = Callable[[Layout, Mapping[Name, Node], Margins], Known]
Spans = Mapping[Name, Iterable[Span]]


def lowest(layout: Layout, nodes: Mapping[Name, Node], margins: Margins) -> Known:
    """The rule of the product: every node counts, and a span lost on one is lost."""
    until = min(node.sent for node in nodes.values()) - margins.skew
    return _after_every_span(nodes, margins.skew), until


def apart(layout: Layout, nodes: Mapping[Name, Node], margins: Margins) -> Known:
    """As it was proposed: lost where spans of a quorum overlap; behind where a quorum is behind."""
    since, _ = _between(layout, _lost(nodes, 0, 0), {}, 0)
    _, until = _between(layout, {}, _behind(nodes, margins), since)
    return since, until


def joint(layout: Layout, nodes: Mapping[Name, Node], margins: Margins) -> Known:
    """What is lost on one node and what another one has not sent yet count together.

    Replicas log a write at different times, and by different clocks: each span is longer by that.
    """
    lost = _lost(nodes, margins.skew, margins.takes + margins.skew)
    return _between(layout, lost, _behind(nodes, margins), 0)


def cautious(layout: Layout, nodes: Mapping[Name, Node], margins: Margins) -> Known:
    """A span lost on one node is lost, as now; behind where a quorum is behind."""
    since = _after_every_span(nodes, margins.takes + margins.skew)
    return _between(layout, {}, _behind(nodes, margins), since)


def with_one_more(rule: Rule) -> Rule:
    """The rule built with Q - 1: one replica more than it should may be behind, or have lost it."""

    def built(layout: Layout, nodes: Mapping[Name, Node], margins: Margins) -> Known:
        return rule(Layout(layout.ranges, _one_more(layout.enough)), nodes, margins)

    built.__name__ = f"{rule.__name__} with one more"
    return built


def _one_more(enough: Enough) -> Enough:
    def without_any(names: Collection[Name]) -> bool:
        return bool(names) and all(enough([n for n in names if n != each]) for each in names)

    return without_any


def _after_every_span(nodes: Mapping[Name, Node], after: Time) -> Time:
    return max((until + after for node in nodes.values() for _, until in node.lost), default=0)


def _lost(nodes: Mapping[Name, Node], before: Time, after: Time) -> Spans:
    return {
        name: [(since - before, until + after) for since, until in node.lost]
        for name, node in nodes.items()
    }


def _behind(nodes: Mapping[Name, Node], margins: Margins) -> Spans:
    return {name: [(node.sent - margins.skew, NEVER)] for name, node in nodes.items()}


def _between(layout: Layout, lost: Spans, behind: Spans, start: Time) -> Known:
    """After the last moment at which enough replicas of a range have lost what they logged.

    Until the first moment after it at which enough have lost it, or have not sent it yet.
    """
    ends = {end for spans in (*lost.values(), *behind.values()) for each in spans for end in each}
    points = sorted({start, *(end for end in ends if end > start)})
    since, until = start, NEVER
    for at, following in zip(points, [*points[1:], NEVER], strict=True):
        lacking = {name for name, spans in lost.items() if _within(at, spans)}
        if _some_range(layout, lacking):
            since, until = following, NEVER
            continue
        lacking |= {name for name, spans in behind.items() if _within(at, spans)}
        if until == NEVER and _some_range(layout, lacking):
            until = at
    return since, until


def _within(at: Time, spans: Iterable[Span]) -> bool:
    return any(since <= at < until for since, until in spans)


def _some_range(layout: Layout, lacking: Collection[Name]) -> bool:
    return any(
        layout.enough([name for name in names if name in lacking]) for names in layout.ranges
    )


def known(world: World, rule: Rule, margins: Margins) -> Known:
    """What the rule takes for known, where each node dates its canaries by its own clock."""
    if not any(node.ahead for node in world.nodes.values()):
        return rule(world.layout, world.nodes, margins)
    dated = {}
    for name, node in world.nodes.items():
        by = node.ahead
        lost = tuple((since + by, until + by) for since, until in node.lost)
        dated[name] = Node(sent=node.sent + by, lost=lost)
    return rule(world.layout, dated, margins)


def acknowledged(world: World, rule: Rule, margins: Margins) -> str:
    """The claim on writes that were acknowledged; says what breaks it."""
    unheard = [
        (number, write.acked)
        for number, write in enumerate(world.writes)
        if write.acked is not None and number not in world.heard
    ]
    if not unheard:
        return ""
    since, until = known(world, rule, margins)
    wrong = [number for number, acked in unheard if since <= acked < until]
    return f"known from {since} to {until}, and writes {wrong} were not heard" if wrong else ""


def shown(world: World, rule: Rule, margins: Margins) -> str:
    """The claim on whatever was begun since, and a read has shown before the frontier."""
    unheard = [
        (number, write.begun, write.shown)
        for number, write in enumerate(world.writes)
        if write.shown is not None and number not in world.heard
    ]
    if not unheard:
        return ""
    since, until = known(world, rule, margins)
    wrong = [number for number, begun, at in unheard if since <= begun and at < until]
    return f"known from {since} to {until}, and writes {wrong} were not heard" if wrong else ""


Claim = Callable[[World, Rule, Margins], str]
