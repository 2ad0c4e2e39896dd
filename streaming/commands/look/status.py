"""``reconcile status``: shows lag, findings, breakers and pauses, also while no stream runs."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from checkpoints.bookmarks import Bookmark, nested
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraLease,
    CassandraLosses,
    CassandraPauses,
    CassandraSweeps,
    Store,
)
from checkpoints.clock import now_micros
from checkpoints.journal import Journal
from checkpoints.lease import Holder
from checkpoints.sweeps import Sweeps
from reconcilers.capture.frontier import newest_of
from reconcilers.declared.families import FAMILIES
from reconcilers.limits.pause import Pause
from reconcilers.rows.finding import State
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.iso import iso
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import RULES, Wait
from streaming.again.last_sweep import NOT_SWEPT, compared_since, last_sweep
from streaming.commands.wiring.generations import doubt_of, held_by_itself
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.lag import PartitionLag, lags, longest
from streaming.settings import Mode, Settings
from streaming.tables.own_keyspace import OwnStores, open_own
from streaming.topics import Watcher

MOST_LOSSES = 3
"""Told one by one."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One mode of one family.

    ``lag`` and ``records`` count what is not settled, also what waits for its delay. ``seconds`` is
    the age of the oldest such record: 0 without one, None if unknown. ``canaries`` has, by node,
    when the newest received canary was written.
    """

    name: str
    last_settled: str | None
    lag: tuple[PartitionLag, ...]
    records: int | None
    seconds: float | None
    holder: Holder | None = None
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
    wait, by `Wait`. ``kafka`` is `REACHABLE`, or why Kafka cannot be asked.
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
    sweep: str = NOT_SWEPT
    losses: tuple[str, ...] = ()
    on_hold: int = 0
    waits: Mapping[str, int] = field(default_factory=dict)


REACHABLE = "reachable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile status [--json]``."""
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print the status; returns 0. Raises if our own keyspace cannot be read."""
    found = status(settings)
    print(json.dumps(as_json(found), indent=2) if arguments.json else "\n".join(as_text(found)))
    return 0


def status(settings: Settings) -> Status:
    """Read everything; without Kafka the lag is left out."""
    own = open_own(settings)
    broker: str | None = None
    watcher: Watcher | None = None
    try:
        watcher = Watcher(settings.kafka)
        streams = list(_streams(settings, own, watcher))
        doubt = doubt_of(settings, own.store, watcher)
    except ReconcilerError as failed:
        broker = str(failed)
        streams = list(_streams(settings, own, None))
        doubt = doubt_of(settings, own.store, None)
    finally:
        if watcher is not None:
            watcher.close()
    counts, waits = _counts(own.journal)
    watching = own.lineage.watching()
    standing = tuple(_standing(settings, own))
    sweeps = CassandraSweeps(own.store, settings.cassandra.keyspace)
    return Status(
        keyspace=settings.cassandra.keyspace,
        delay=settings.stream.delay,
        window=settings.stream.window,
        kafka=broker or REACHABLE,
        streams=tuple(streams),
        findings=counts,
        stuck=sum(each.open for each in counts if each.state == State.STUCK),
        unresolved=sum(each.open for each in counts if each.kind == Kind.UNRESOLVED),
        breakers={breaker.value: why for breaker, why in own.journal.breakers().items()},
        watched_since=_iso(watching.since if watching else None),
        pauses=tuple(each.told for each in standing if each.pilot is None),
        pilots=tuple(each.told for each in standing if each.pilot is not None),
        sweep=last_sweep(sweeps, settings.families()[0].names),
        losses=tuple(_losses(own.store, sweeps, settings.families()[0].names)),
        held=tuple(held_by_itself(settings, doubt, standing)),
        on_hold=sum(1 for family in FAMILIES for _ in own.journal.holds.all(family)),
        waits=waits,
    )


def _losses(store: Store, sweeps: Sweeps, systems: Collection[str]) -> Iterator[str]:
    """The losses since the last complete sweep began."""
    for loss in CassandraLosses(store).since(compared_since(sweeps.all(), systems) or 0):
        yield f"{iso(loss.at)}: {loss.why}"


def _standing(settings: Settings, own: OwnStores) -> Iterator[Pause]:
    pauses, now = CassandraPauses(own.store, settings.cassandra.keyspace), now_micros()
    return (each for each in pauses.standing() if each.stands(now))


def _counts(journal: Journal) -> tuple[tuple[OpenCount, ...], Mapping[str, int]]:
    """Open findings by kind, and those that wait by `Wait`; they are read page by page."""
    counts, waits = Counter[tuple[str, str, str]](), dict[str, int]()
    for family in FAMILIES:
        for finding in journal.open_findings(family):
            counts[finding.projection, finding.kind.value, finding.state.value] += 1
            if finding.wait is not None and finding.state is not State.STUCK:
                waits[finding.wait] = waits.get(finding.wait, 0) + 1
    return tuple(OpenCount(*labels, number) for labels, number in sorted(counts.items())), waits


def _streams(settings: Settings, own: OwnStores, watcher: Watcher | None) -> Iterator[StreamStatus]:
    """Each mode that ever ran, or that holds the lease now."""
    bookmarks, lease = CassandraBookmarks(own.store), CassandraLease(own.store)
    for mode in (Mode.REPAIR, Mode.OBSERVE):
        names = StreamNames.of(settings, mode)
        holder = lease.held_by(names.lease) if mode is Mode.REPAIR else None
        for family in (each for each in settings.families() if each.projections):
            newest = bookmarks.newest(names.bookmarks(family))
            if newest is None and holder is None:
                continue
            lag: tuple[PartitionLag, ...] = ()
            if watcher is not None:
                topics = (settings.kafka.topic_prefix, names.suspects_topic)
                lag = tuple(lags(watcher, topics, nested(newest.settled) if newest else {}))
            yield stream_status(mode, newest, holder, lag)


def stream_status(
    mode: Mode, newest: Bookmark | None, holder: Holder | None, lag: tuple[PartitionLag, ...]
) -> StreamStatus:
    """The status of one mode."""
    heard = {} if newest is None else newest_of(newest.heard)
    waiting = [each.records for each in lag if each.records is not None]
    return StreamStatus(
        name=mode.value,
        last_settled=_iso(newest.recorded_at) if newest else None,
        lag=lag,
        records=sum(waiting) if waiting else None,
        seconds=longest(lag, now_micros()),
        holder=holder,
        canaries={node: _iso(at) for node, at in sorted(heard.items())},
    )


def as_json(found: Status) -> dict[str, Any]:
    """The status as one JSON object."""
    told = asdict(found)
    for stream, shown in zip(found.streams, told["streams"], strict=True):
        shown["lag"] = [
            asdict(each) | {"records": each.records, "oldest": _iso(each.oldest)}
            for each in stream.lag
        ]
    return told


def _iso(at: Micros | None) -> str | None:
    return None if at is None else iso(at)


# --- for people ---------------------------------------------------------------------------------


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
    yield found.sweep
    yield from _lost_text(found.losses)
    if found.kafka != REACHABLE:
        yield f"Kafka does not answer, the lag is not known: {found.kafka}"
    for stream in found.streams:
        yield from _stream_text(stream)
    yield from _held_back_text(found)
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
    yield f"{stream.name} stream: last settled {stream.last_settled or 'never yet'}{who}"
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
