"""What ``reconcile status --check`` finds wrong, for monitoring without Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.families.message import MESSAGE
from streaming.commands.look.status_shown import REACHABLE, Status, StreamStatus

LATE = 600.0
"""Seconds that a record may wait beyond its delay and window; as the alert on the lag."""


def problems(found: Status) -> Iterator[str]:
    """A short text for each problem. A pause or pilot that a person asked for is none."""
    if found.kafka != REACHABLE:
        yield f"Kafka does not answer: {found.kafka}"
    running = newest_mode(found)
    if not running:
        yield "no stream has run yet"
    elif found.kafka == REACHABLE:
        for stream in running:
            yield from _late(stream, found.delay + 2 * found.window)
    yield from (f"held: {each} ends it" for each in found.held)
    yield from (f"breaker {each} is open" for each in found.breakers)
    if found.executors == 0:
        yield "Spark has no executors"
    if found.stuck:
        yield f"{found.stuck} findings are stuck"
    if found.losses:
        yield f"{len(found.losses)} losses of events since the last whole sweep"


def newest_mode(found: Status) -> list[StreamStatus]:
    """The streams of the mode that has settled last; the other one does not run any more."""
    settled = {each.name: each.last_settled or "" for each in found.streams}
    for each in found.streams:
        settled[each.name] = max(settled[each.name], each.last_settled or "")
    newest = max(settled, key=lambda name: settled[name], default=None)
    return [each for each in found.streams if each.name == newest]


def _late(stream: StreamStatus, usual: float) -> Iterator[str]:
    """``usual``: the seconds that a record waits when nothing is late."""
    of = "" if stream.family == MESSAGE.name else f" of {stream.family}"
    if stream.seconds is None:
        yield f"the lag of the {stream.name} stream{of} is not known"
    elif stream.seconds > usual + LATE:
        yield f"the oldest record of the {stream.name} stream{of} is {stream.seconds:.0f} s old"
