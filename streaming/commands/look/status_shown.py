"""What ``reconcile status`` shows: the values, as text for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from checkpoints.lease import Holder
from reconcilers.declared.families.message import MESSAGE
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros
from reconcilers.words.waiting import RULES, Wait
from streaming.again.last_sweep import NOT_SWEPT
from streaming.commands.look.nines import Nines, as_lines
from streaming.monitoring.lag import PartitionLag

MOST_LOSSES = 3
"""Told one by one."""
REACHABLE = "reachable"


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One mode of one family.

    ``lag`` and ``records`` count what is not settled, also what waits for its delay. ``seconds`` is
    the age of the oldest such record: 0 without one, None if unknown. ``standby`` waits for the
    lease of ``holder``. ``canaries`` has, by node, when the newest received canary was written.
    """

    name: str
    family: str
    last_settled: str | None
    lag: tuple[PartitionLag, ...]
    records: int | None
    seconds: float | None
    holder: Holder | None = None
    standby: Holder | None = None
    canaries: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenCount:
    """The number of open findings of a kind and state in a projection."""

    projection: str
    kind: str
    state: str
    open: int


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that is shown. Times are ISO 8601 in UTC, durations seconds.

    ``held`` lists pauses that no person has asked for. ``waits`` is the number of findings that
    wait, by `Wait`. ``stale_right``: the age of the oldest open right that should be gone, None
    without one. ``executors``: those of Spark, None if it is not known. ``kafka`` is `REACHABLE`,
    or why Kafka cannot be asked. ``nines`` are those of a stream of this host.
    """

    keyspace: str
    delay: float
    window: float
    kafka: str
    streams: tuple[StreamStatus, ...]
    findings: tuple[OpenCount, ...]
    stuck: int
    unresolved: int
    breakers: Mapping[str, str]
    watched_since: str | None
    pauses: tuple[str, ...] = ()
    pilots: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    sweeps: Mapping[str, str] = field(default_factory=lambda: {MESSAGE.name: NOT_SWEPT})
    losses: tuple[str, ...] = ()
    on_hold: int = 0
    waits: Mapping[str, int] = field(default_factory=dict)
    stale_right: float | None = None
    executors: int | None = None
    nines: tuple[Nines, ...] = ()


def as_json(found: Status) -> dict[str, Any]:
    """The status as one JSON object."""
    told = asdict(found)
    for stream, shown in zip(found.streams, told["streams"], strict=True):
        shown["lag"] = [
            asdict(each) | {"records": each.records, "oldest": iso_or_none(each.oldest)}
            for each in stream.lag
        ]
    return told


def iso_or_none(at: Micros | None) -> str | None:
    """A time (µs) as text, None without one."""
    return None if at is None else iso(at)


def _watched_text(since: str | None) -> str:
    if since is not None:
        return f"every change has been received since {since}"
    return (
        "it is not known since when every change is received: lineage begins when every watched"
        " table is captured and a stream has received canaries of every node; `reconcile doctor`"
        " checks both"
    )


def as_text(found: Status) -> Iterator[str]:
    """The status as lines."""
    yield f"keyspace {found.keyspace}: D = {found.delay:g} s, W = {found.window:g} s"
    yield _watched_text(found.watched_since)
    yield from (f"{family}: {told}" for family, told in found.sweeps.items())
    yield from _lost_text(found.losses)
    if found.kafka != REACHABLE:
        yield f"Kafka does not answer, the lag is not known: {found.kafka}"
    for stream in found.streams:
        yield from _stream_text(stream)
    if found.executors is not None:
        none = "; without any nothing is compared" if not found.executors else ""
        yield f"executors of Spark: {found.executors}{none}"
    yield from as_lines(found.nines)
    yield from _held_back_text(found)
    if found.stale_right is not None:
        yield (
            f"STALE RIGHT: one that should be gone still works {found.stale_right:.0f} s after it"
            " was found: `reconcile findings --kind extra_row --system user_rights` (or"
            " listed_rights)"
        )
    if not found.findings:
        yield "no open findings"
    for each in found.findings:
        yield f"  {each.open:>7}  {each.state:<10} {each.kind:<24} {each.projection}"
    for wait, number in sorted(found.waits.items()):
        yield f"{number} wait ({wait}): {RULES[Wait(wait)]}"
    if found.stuck:
        yield f"{found.stuck} stuck: `reconcile findings --state stuck`, then --retry"


def _lost_text(losses: Sequence[str]) -> Iterator[str]:
    """The newest losses that no sweep has made good."""
    yield from (f"LOST: {each}" for each in losses[:MOST_LOSSES])
    if len(losses) > MOST_LOSSES:
        yield f"LOST: {len(losses) - MOST_LOSSES} times more, since the last whole sweep"


def _held_back_text(found: Status) -> Iterator[str]:
    """Pauses, pilots, holds and breakers."""
    for each in found.held:
        yield f"HELD: {each} ends it"
    for pause in found.pauses:
        yield f"PAUSED: {pause}; `reconcile resume --pause NAME` ends it"
    for pilot in found.pilots:
        yield f"PILOT: {pilot}; `reconcile pilot --end` ends it"
    if found.on_hold:
        yield f"{found.on_hold} keys are on hold: `reconcile findings --on-hold`"
    for breaker, why in found.breakers.items():
        yield (
            f"breaker {breaker} is OPEN: {why}; look at the findings, then"
            f" `reconcile resume --breaker {breaker}`"
        )
    if not found.breakers:
        yield "breakers closed"


def _stream_text(stream: StreamStatus) -> Iterator[str]:
    who = f", run by {stream.holder.host}" if stream.holder else ""
    who += f", {stream.standby.host} stands by" if stream.standby else ""
    of = "" if stream.family == MESSAGE.name else f" of {stream.family}"
    yield f"{stream.name} stream{of}: last settled {stream.last_settled or 'never yet'}{who}"
    if stream.records is not None:
        age = f", the oldest is {stream.seconds:.0f} s old" if stream.seconds else ""
        yield f"  {stream.records} records are not settled yet{age}"
    for node, written in stream.canaries.items():
        yield f"  node {node}: canaries up to {written} were received"
    for each in stream.lag:
        if each.records is None:
            yield f"  {each.topic}/{each.partition}: nothing settled yet, ends at {each.end}"
        elif each.records:
            yield f"  {each.topic}/{each.partition}: {each.records} of {each.end}"
