"""``reconcile status``: shows lag, findings, breakers and pauses, also while no stream runs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from checkpoints.bookmarks import Bookmark, Bookmarks, nested
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraLease,
    CassandraPauses,
    CassandraSweeps,
)
from checkpoints.clock import now_micros, to_seconds
from checkpoints.journal import Journal
from checkpoints.lease import Holder
from checkpoints.losses import Losses
from checkpoints.sweeps import Sweeps
from reconcilers.capture.frontier import newest_of
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.limits.pause import Pause
from reconcilers.rows.finding import State
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.iso import iso
from reconcilers.words.model import Kind, Micros
from streaming.again.last_sweep import compared_since, last_sweep
from streaming.again.pauses import local_time
from streaming.commands.arguments.output import TABLE, add_object_format, object_text
from streaming.commands.look.nines import nines_in
from streaming.commands.look.status_check import problems
from streaming.commands.look.status_shown import (
    REACHABLE,
    OpenCount,
    Status,
    StreamStatus,
    as_json,
    as_text,
    iso_or_none,
)
from streaming.commands.wiring.generations import doubt_of, held_by_itself
from streaming.commands.wiring.opened_stream import losses_of
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.lag import PartitionLag, lags, longest
from streaming.monitoring.scrape import gauge, scrape
from streaming.settings import Mode, Settings
from streaming.tables.own_keyspace import OwnStores, open_own
from streaming.topics import Watcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile status [--check]``."""
    parser.add_argument(
        "--check", action="store_true", help="one line, and exit code 1 if anything is wrong"
    )
    add_object_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print the status. Returns 1 if ``--check`` finds a problem; else 0.

    Raises if our own keyspace cannot be read.
    """
    found = status(settings)
    if arguments.check:
        wrong = list(problems(found))
        print("; ".join(wrong) or "nothing is wrong")
        return int(bool(wrong))
    form = arguments.format
    print("\n".join(as_text(found)) if form == TABLE else object_text(form, as_json(found)))
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
        streams, doubt = list(_streams(settings, own, None)), doubt_of(settings, own.store, None)
    finally:
        if watcher is not None:
            watcher.close()
    found = open_totals(own.journal)
    standing = tuple(_standing(settings, own))
    known = CassandraSweeps(own.store, settings.cassandra.keyspace)
    swept = list(with_a_stream(settings, CassandraBookmarks(own.store)))
    return Status(
        keyspace=settings.cassandra.keyspace,
        delay=settings.stream.delay,
        window=settings.stream.window,
        kafka=broker or REACHABLE,
        streams=tuple(streams),
        findings=found.counts,
        stuck=sum(each.open for each in found.counts if each.state == State.STUCK),
        unresolved=sum(each.open for each in found.counts if each.kind == Kind.UNRESOLVED),
        breakers={breaker.value: why for breaker, why in own.journal.breakers().items()},
        watched_since=_watched_since(own),
        pauses=tuple(each.told for each in standing if each.pilot is None),
        pilots=tuple(each.told for each in standing if each.pilot is not None),
        sweeps=_told_sweeps(settings, known, swept),
        losses=tuple(told_losses(partial(losses_of, own.store), known, swept)),
        held=tuple(held_by_itself(settings, doubt, standing)),
        on_hold=sum(1 for family in FAMILIES for _ in own.journal.holds.all(family)),
        waits=found.waits,
        stale_right=found.stale_right(now_micros()),
        executors=_executors(settings),
        nines=nines_in(scrape(settings.metrics) or ()),
    )


def _watched_since(own: OwnStores) -> str | None:
    watching = own.lineage.watching()
    return iso_or_none(watching.since if watching else None)


def _executors(settings: Settings) -> int | None:
    """The executors of the stream of this host; None with a local master, or without a stream."""
    found = None if settings.stream.is_local else gauge(settings.metrics, "reconciler_executors")
    return None if found is None else int(found)


def with_a_stream(settings: Settings, bookmarks: Bookmarks) -> Iterator[Family]:
    """The families that a stream has compared, and that of messages.

    A table that this James does not write has no stream, and is not swept.
    """
    first, *others = (each for each in settings.families() if each.projections)
    yield first
    for each in others:
        names = (StreamNames.of(settings, mode).bookmarks(each) for mode in Mode)
        if any(bookmarks.newest(name) is not None for name in names):
            yield each


def _told_sweeps(settings: Settings, sweeps: Sweeps, families: Sequence[Family]) -> dict[str, str]:
    """The last sweep of each family in a line."""
    hours = settings.sweep.hours
    waits = None if hours is None else hours.closed(local_time())
    return {each.name: last_sweep(sweeps, each.names, waits) for each in families}


def told_losses(
    losses: Callable[[Family], Losses], sweeps: Sweeps, families: Sequence[Family]
) -> Iterator[str]:
    """The losses since the last complete sweep of a family that they concern began.

    ``losses`` returns those of all streams for the first family, that of messages, and for another
    family those of its own stream alone.
    """
    known, (first, *others) = sweeps.all(), families
    since = {each.name: compared_since(known, each.names) or 0 for each in families}
    for loss in losses(first).since(min(since.values())):
        yield f"{iso(loss.at)}: {loss.why}"
    for each in others:
        for loss in losses(each).since(since[each.name]):
            yield f"{iso(loss.at)}: {each.name}: {loss.why}"


def _standing(settings: Settings, own: OwnStores) -> Iterator[Pause]:
    pauses, now = CassandraPauses(own.store, settings.cassandra.keyspace), now_micros()
    return (each for each in pauses.standing() if each.stands(now))


GRANTING = frozenset(
    each.name for family in FAMILIES for each in family.projections if each.grants_access
)
"""The projections whose rows give users access."""


@dataclass(frozen=True, slots=True)
class OpenTotals:
    """The open findings of the journal: by kind, those that wait by `Wait`, and the oldest of them.

    ``excess_since``: when (µs) the oldest was found that gives access and should be gone, or None.
    """

    counts: tuple[OpenCount, ...]
    waits: Mapping[str, int]
    excess_since: Micros | None

    def stale_right(self, now: Micros) -> float | None:
        """The age (s) of that oldest one."""
        since = self.excess_since
        return None if since is None else max(0.0, to_seconds(now - since))


def open_totals(journal: Journal) -> OpenTotals:
    """Read the open findings, page by page."""
    counts, waits = Counter[tuple[str, str, str]](), dict[str, int]()
    excess: Micros | None = None
    for family in FAMILIES:
        for finding in journal.open_findings(family):
            counts[finding.projection, finding.kind.value, finding.state.value] += 1
            if finding.wait is not None and finding.state is not State.STUCK:
                waits[finding.wait] = waits.get(finding.wait, 0) + 1
            if finding.projection in GRANTING and finding.kind is Kind.EXTRA_ROW:
                excess = min(finding.found_at, excess or finding.found_at)
    told = tuple(OpenCount(*labels, number) for labels, number in sorted(counts.items()))
    return OpenTotals(told, waits, excess)


def _streams(settings: Settings, own: OwnStores, watcher: Watcher | None) -> Iterator[StreamStatus]:
    """Each mode that ever ran, or that holds the lease now."""
    bookmarks, lease = CassandraBookmarks(own.store), CassandraLease(own.store)
    for mode in (Mode.REPAIR, Mode.OBSERVE):
        names = StreamNames.of(settings, mode)
        holder, standby = (
            lease.held_by(each) if mode is Mode.REPAIR else None
            for each in (names.lease, names.standby)
        )
        for family in (each for each in settings.families() if each.projections):
            newest = bookmarks.newest(names.bookmarks(family))
            if newest is None and holder is None:
                continue
            lag: tuple[PartitionLag, ...] = ()
            if watcher is not None:
                topics = (settings.kafka.topic_prefix, names.suspects_topic)
                lag = tuple(lags(watcher, topics, nested(newest.settled) if newest else {}))
            told = stream_status(mode, family, newest, holder, lag)
            yield replace(told, standby=standby)


def stream_status(
    mode: Mode,
    family: Family,
    newest: Bookmark | None,
    holder: Holder | None,
    lag: tuple[PartitionLag, ...],
) -> StreamStatus:
    """The status of one mode of a family."""
    heard = {} if newest is None else newest_of(newest.heard)
    waiting = [each.records for each in lag if each.records is not None]
    return StreamStatus(
        name=mode.value,
        family=family.name,
        last_settled=iso_or_none(newest.recorded_at) if newest else None,
        lag=lag,
        records=sum(waiting) if waiting else None,
        seconds=longest(lag, now_micros()),
        holder=holder,
        canaries={node: iso_or_none(at) for node, at in sorted(heard.items())},
    )
