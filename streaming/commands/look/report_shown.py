"""The report of some days: its values, as JSON and as text. All texts of users are made plain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.codec import Json
from reconcilers.rows.nines import percent
from reconcilers.words.iso import iso
from streaming.monitoring.plain import plain

LONGEST_ROW = 600
"""Characters of a row of an example."""


@dataclass(frozen=True, slots=True)
class StateCount:
    """How many findings came to a state."""

    system: str
    kind: str
    state: str
    findings: int


@dataclass(frozen=True, slots=True)
class HealedShare:
    """Of the findings without a repair of ours, how many ended by themselves in time.

    ``unknown`` ones are younger than this. ``low`` and ``high`` bound the share (95 %).
    """

    seconds: int
    healed: int
    not_healed: int
    unknown: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class WaitCount:
    """How many findings wait, or have waited, for a reason, and what ends that."""

    wait: str
    findings: int
    ends: str
    command: str


@dataclass(frozen=True, slots=True)
class RepairTimes:
    """The time (s) from the oldest change of a finding to its first repair."""

    system: str
    repairs: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class BreakerOpening:
    """One opening of a breaker; times are ISO 8601 in UTC."""

    breaker: str
    opened: str
    closed: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class NotWritten:
    """Findings that a stream in repair mode would repair, and by what."""

    system: str
    kind: str
    findings: int
    write: str


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many findings of a day (UTC) had this outcome."""

    day: str
    outcome: str
    findings: int


@dataclass(frozen=True, slots=True)
class PeriodReport:
    """Everything that is shown. ``left_out`` are lines of findings above the limit of memory.

    ``capture`` has, by node, how old (s) its newest canary was when the stream settled last.
    """

    keyspace: str
    since: str
    until: str
    found: int
    lines: int
    left_out: int
    wait_seconds: float
    states: tuple[StateCount, ...]
    days: tuple[DayCount, ...]
    healed: tuple[HealedShare, ...]
    waited: tuple[WaitCount, ...]
    waiting: tuple[WaitCount, ...]
    repairs: tuple[RepairTimes, ...]
    not_written: tuple[NotWritten, ...]
    breakers: tuple[BreakerOpening, ...]
    pauses: tuple[str, ...]
    losses: tuple[str, ...]
    sweeps: tuple[str, ...]
    capture: dict[str, float]
    examples: tuple[Json, ...]


def as_json(report: PeriodReport) -> dict[str, Any]:
    """The report as one JSON object."""
    return asdict(report)


def as_text(report: PeriodReport) -> Iterator[str]:
    """The report as lines. No character in them acts on a terminal."""
    for title, lines in sections(report):
        yield title
        yield from (f"  {line}" for line in lines)


def sections(report: PeriodReport) -> Iterator[tuple[str, list[str]]]:
    """The report as titles with their lines, each plain text."""
    head = f"{report.keyspace}, {report.since} to {report.until}: {report.found} findings"
    yield one_line(head), [*map(one_line, _left_out(report))]
    for title, lines, otherwise in (
        ("What became of them", _states(report), "nothing was found"),
        ("Is the delay long enough?", _healed(report), "nothing was found"),
        ("From the oldest change to the repair", _repairs(report), "nothing was repaired"),
        ("Would be written in repair mode", _not_written(report), "nothing"),
        ("Was held or observed, for", _waits(report.waited), "nothing"),
        ("Waits now, for", _waits(report.waiting), "nothing"),
        ("Openings of breakers", _breakers(report), "none"),
        ("Pauses and pilots", report.pauses, "none"),
        ("Change events that may be lost", report.losses, "none"),
        ("Sweeps", report.sweeps, "none"),
        ("Capture", _capture(report), "not known: no canary was received in this time"),
        ("Findings chosen at random", _examples(report), "none"),
    ):
        yield title, [*map(one_line, lines)] or [otherwise]


def one_line(text: str) -> str:
    """Text that a user may have chosen, in one line and without control characters."""
    return plain(text.replace("\n", "\\n").replace("\t", "\\t"))


def _left_out(report: PeriodReport) -> Iterator[str]:
    if report.left_out:
        yield (
            f"{report.left_out} of {report.lines} lines of the log are of findings above the"
            " limit of this report: every number is a least one; choose a shorter --since"
        )


def _states(report: PeriodReport) -> Iterator[str]:
    for each in report.states:
        yield f"{each.findings:>8}  {each.state:<10}  {each.kind:<24}  {each.system}"


def _healed(report: PeriodReport) -> Iterator[str]:
    for each in report.healed:
        known = each.healed + each.not_healed
        if not known + each.unknown:
            continue
        bounds = f"{each.low:.1%} to {each.high:.1%}"
        share = percent(each.healed / known, known) if known else "not known"
        unknown = f", {each.unknown} are too young to know" if each.unknown else ""
        yield (
            f"{share} of {known} findings without a repair were healed within {each.seconds} s of"
            f" being found ({bounds}, 95 %){unknown}"
        )
    if report.healed and report.found:
        yield (
            f"a change waits {report.wait_seconds:g} s before it is compared; if many heal after"
            " that, make stream.delay longer"
        )


def _repairs(report: PeriodReport) -> Iterator[str]:
    for each in report.repairs:
        yield f"{each.system}: p50 {each.p50:.0f} s, p99 {each.p99:.0f} s of {each.repairs} repairs"


def _not_written(report: PeriodReport) -> Iterator[str]:
    for each in report.not_written:
        yield f"{each.findings:>8}  {each.kind:<24}  {each.system}: {each.write}"


def _waits(waits: Iterable[WaitCount]) -> Iterator[str]:
    for each in waits:
        command = f": `{each.command}`" if each.command else ""
        yield f"{each.findings:>8}  {each.wait:<18}  {each.ends} ends it{command}"


def _breakers(report: PeriodReport) -> Iterator[str]:
    for each in report.breakers:
        closed = "still OPEN" if each.closed is None else f"closed {each.closed}"
        yield f"{each.opened}  {each.breaker}: {each.reason}; {closed}"


def _capture(report: PeriodReport) -> Iterator[str]:
    for node, seconds in report.capture.items():
        yield (
            f"node {node}: its newest canary was {seconds:.0f} s old when the stream settled last;"
            f" {report.wait_seconds:g} s of that is the wait of every change"
        )


def _examples(report: PeriodReport) -> Iterator[str]:
    for each in report.examples:
        yield f"{iso(each['at'])}  {each['state']}  {each['kind']}  {each['projection']}"
        yield f"    {each['sentence']}"
        yield from (f"    {side}: {row}" for side, row in sides(each))


def sides(finding: Json) -> Iterator[tuple[str, str]]:
    """Both sides of a finding, each with its name, as text."""
    for row in finding["truth"] or (None,):
        yield "truth", _row(row)
    yield finding["projection"], _row(finding["before"])


def _row(row: Json | None) -> str:
    if row is None:
        return "no row"
    text = json.dumps(row["cells"], ensure_ascii=False)
    return text if len(text) <= LONGEST_ROW else f"{text[:LONGEST_ROW]}…"
