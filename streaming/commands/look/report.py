"""``reconcile report``: what happened in some days, or in observe mode would have happened.

It reads our own keyspace only, and writes nothing there.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from pathlib import Path

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import CassandraBookmarks, CassandraPauses, CassandraSweeps
from checkpoints.clock import now_micros, to_seconds
from checkpoints.codec import Json
from checkpoints.journal import Journal
from checkpoints.losses import Loss
from checkpoints.pauses import Pauses
from checkpoints.sweeps import SweepRecord
from reconcilers.capture.frontier import newest_of
from reconcilers.declared.families import FAMILIES
from reconcilers.rows.finding import WAITING, State
from reconcilers.rows.summary import (
    HEALING,
    LoggedState,
    Summary,
    by_day,
    quantile,
)
from reconcilers.words.errors import Misconfigured
from reconcilers.words.iso import iso
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import RULES, Wait
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.arguments.output import TABLE, add_object_format, object_text
from streaming.commands.arguments.times import moment_of
from streaming.commands.look.report_html import as_html
from streaming.commands.look.report_shown import (
    BreakerOpening,
    DayCount,
    HealedShare,
    NotWritten,
    PeriodReport,
    RepairTimes,
    StateCount,
    WaitCount,
    as_json,
    as_text,
)
from streaming.commands.look.status_shown import iso_or_none
from streaming.commands.wiring.opened_stream import losses_of
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, Settings
from streaming.tables.own_keyspace import open_own

WRITES = {
    Kind.MISSING_ROW: "the row is added",
    Kind.DIFFERING_CELLS: "the differing cells are set as in the truth",
    Kind.EXTRA_ROW: "the row is removed",
    Kind.COUNTER_DRIFT: "the error is subtracted from the counter",
    Kind.LARGE_CORRECTION: "the error is subtracted from the counter, after a person accepts it",
}
AFTER_A_DECISION = "nothing before a person has decided"
STANDING = {
    State.STUCK: ("a person", "reconcile findings --retry KEY"),
    State.REPORTED: ("a person", "reconcile findings --state reported"),
    State.INTENDED: ("the stream", ""),
    State.UNDOING: ("the stream", ""),
}
"""Who ends the states in which a finding is open and does not wait for a limit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile report [--since 7d] [--format table|json|jsonl] [--html FILE]``."""
    parser.add_argument(
        "--since",
        type=moment_of,
        default="7d",
        metavar="TIME",
        help="how long ago (12h, 7d), or ISO 8601 in UTC (7d)",
    )
    add_object_format(parser)
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write one HTML file with plots"
    )
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print the report; returns 0. Raises `Misconfigured` if the file cannot be written."""
    report = report_of(_sources(settings), Period(arguments.since, now_micros()))
    if arguments.html is not None:
        try:
            arguments.html.write_text(as_html(report), "utf-8", "replace")
        except OSError as failed:
            raise Misconfigured(f"cannot write {arguments.html}: {failed.strerror}") from failed
    form = arguments.format
    print("\n".join(as_text(report)) if form == TABLE else object_text(form, as_json(report)))
    return 0


@dataclass(frozen=True, slots=True)
class Period:
    """From a time to now (µs)."""

    since: Micros
    now: Micros

    def has(self, at: Micros) -> bool:
        """Whether a time is in it."""
        return self.since <= at

    @property
    def days(self) -> Iterator[date]:
        """The days (UTC) whose log may have its lines."""
        return FindingFilter(since=self.since).days(self.now)


@dataclass(frozen=True, slots=True)
class ReportSources:
    """What the report reads. ``wait`` is how long (s) a change waits before it is compared."""

    keyspace: str
    wait: float
    journal: Journal
    pauses: Pauses
    losses: tuple[Loss, ...]
    sweeps: tuple[SweepRecord, ...]
    bookmarks: tuple[Bookmark, ...]


def _sources(settings: Settings) -> ReportSources:
    own, keyspace = open_own(settings), settings.cassandra.keyspace
    families = [each for each in settings.families() if each.projections]
    kept = CassandraBookmarks(own.store)
    names = [StreamNames.of(settings, mode).bookmarks(each) for mode in Mode for each in families]
    return ReportSources(
        keyspace,
        settings.stream.delay + settings.stream.window,
        own.journal,
        CassandraPauses(own.store, keyspace),
        tuple(chain.from_iterable(losses_of(own.store, each).since(0) for each in families)),
        CassandraSweeps(own.store, keyspace).all(),
        tuple(found for found in map(kept.newest, names) if found is not None),
    )


def report_of(sources: ReportSources, period: Period) -> PeriodReport:
    """Read and count everything. The log is read once, line by line."""
    journal, summary = sources.journal, Summary[Json](period.since)
    for line in chain.from_iterable(map(journal.log, period.days)):
        summary.add(logged(line))
    opened = journal.all_openings()
    return PeriodReport(
        keyspace=sources.keyspace,
        since=iso(period.since),
        until=iso(period.now),
        found=sum(1 for _ in summary.found),
        lines=summary.lines,
        left_out=summary.left_out,
        wait_seconds=sources.wait,
        states=tuple(_states(summary)),
        days=tuple(_days(summary)),
        healed=tuple(_healed(summary, period.now)),
        waited=tuple(_waits(summary.by_wait())),
        waiting=tuple(_standing(journal)),
        repairs=tuple(_repairs(summary)),
        not_written=tuple(_not_written(summary)),
        breakers=tuple(
            BreakerOpening(each.breaker, iso(each.at), iso_or_none(closed), each.reason)
            for each, closed in opened
            if period.has(each.at) or closed is None
        ),
        pauses=tuple(_pauses(sources.pauses, period)),
        losses=tuple(
            f"{iso(each.at)}: {each.why}" for each in sources.losses if each.at >= period.since
        ),
        sweeps=tuple(_sweeps(sources.sweeps, period)),
        capture=_capture(sources.bookmarks, period),
        examples=tuple(summary.examples),
    )


def logged(line: Json) -> LoggedState[Json]:
    """A line of the log, as it is counted."""
    key = {name: value for name, value in line.items() if name not in NOT_IN_KEY}
    waits = line["waits"] if line["state"] in WAITING else None
    return LoggedState(
        name=json.dumps(key, sort_keys=True),
        system=line["projection"],
        kind=line["kind"],
        state=State(line["state"]),
        at=line["at"],
        found_at=line["found_at"],
        oldest=line["oldest"],
        wrote=bool(line["writes"]),
        wait=None if waits is None else Wait(waits["wait"]),
        line=line,
    )


NOT_IN_KEY = frozenset(
    {"at", "kind", "state", "sentence", "oldest", "attempts", "tried_at", "batch", "before"}
    | {"writes", "next_look", "accepted", "truth", "waits"}
    | {each.truth.source.name for each in FAMILIES if not each.is_source_in_key}
)
"""The fields of a line that may change while the finding stays the same."""


def _states(summary: Summary[Json]) -> Iterator[StateCount]:
    for (system, kind, state), number in sorted(summary.by_state().items()):
        yield StateCount(system, kind, state.value, number)


def _days(summary: Summary[Json]) -> Iterator[DayCount]:
    for (number, outcome), findings in sorted(by_day(summary.found).items()):
        day = date(1970, 1, 1) + timedelta(days=number)
        yield DayCount(day.isoformat(), outcome, findings)


def _healed(summary: Summary[Json], now: Micros) -> Iterator[HealedShare]:
    for span in HEALING:
        share = summary.healed_within(span, now)
        bounds = share.interval()
        yield HealedShare(
            int(to_seconds(span)), share.good, share.bad, share.missing, bounds.low, bounds.high
        )


def _waits(waits: Counter[Wait]) -> Iterator[WaitCount]:
    for wait, number in waits.most_common():
        yield WaitCount(wait.value, number, RULES[wait].ends.value, RULES[wait].command)


def _standing(journal: Journal) -> Iterator[WaitCount]:
    """The open findings, by what ends them."""
    waits, states = Counter[Wait](), Counter[State]()
    for family in FAMILIES:
        for finding in journal.open_findings(family):
            if finding.wait is not None:
                waits[finding.wait] += 1
            else:
                states[finding.state] += 1
    yield from _waits(waits)
    for state, number in states.most_common():
        ends, command = STANDING.get(state, ("the stream", ""))
        yield WaitCount(state.value, number, ends, command)


def _repairs(summary: Summary[Json]) -> Iterator[RepairTimes]:
    for system, times in summary.times_to_repair().items():
        p50, p99 = (to_seconds(quantile(times, part)) for part in (0.5, 0.99))
        yield RepairTimes(system, len(times), p50, p99)


def _not_written(summary: Summary[Json]) -> Iterator[NotWritten]:
    for (system, kind), number in sorted(summary.not_written().items()):
        yield NotWritten(system, kind, number, WRITES.get(Kind(kind), AFTER_A_DECISION))


def _pauses(pauses: Pauses, period: Period) -> Iterator[str]:
    for each, ended in pauses.history():
        if period.has(each.asked_at) or (ended is None and each.stands(period.now)):
            end = f"; ended {iso(ended.at)} by {ended.who}: {ended.reason}" if ended else ""
            yield f"{iso(each.asked_at)}  {each.told}{end}"


def _sweeps(sweeps: Iterable[SweepRecord], period: Period) -> Iterator[str]:
    for each in sweeps:
        if period.has(each.ended_at or each.began_at):
            ended = "not ended" if each.ended_at is None else f"ended {iso(each.ended_at)}"
            yield f"{iso(each.began_at)}  by {each.who}, {ended}: {each.outcome}"


def _capture(bookmarks: Iterable[Bookmark], period: Period) -> dict[str, float]:
    newest: dict[str, tuple[Micros, float]] = {}
    for each in bookmarks:
        if period.has(each.recorded_at):
            for node, at in newest_of(each.heard).items():
                found = (each.recorded_at, to_seconds(each.recorded_at - at))
                newest[node] = max(newest.get(node, found), found)
    return {node: age for node, (_, age) in sorted(newest.items())}
