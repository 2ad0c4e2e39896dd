"""The closing judgement: what was seeded, what the reconciler says, what really differs. Pure.

The three come from separate code: the ledger (ledger.py), the reconciler's journal, and the full
comparison (compare.py).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from deploy.demo.compare import Difference
from deploy.demo.history import RowKey
from deploy.demo.ledger import HEALED, VERIFIED, Entry, judge
from deploy.demo.sight import REPAIRED, REPORTED

NOT_FINE = "NOT FINE"
PLANTED = "planted"
FOUND = "found"

Line = Mapping[str, Any]
"""A finding of the journal, as `checkpoints.codec` writes it to JSON."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is judged. `log` is what became of findings, oldest first; `standing` are open."""

    entries: Sequence[Entry]
    log: Sequence[Line]
    standing: Sequence[Line]
    differences: Sequence[Difference]
    breakers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How each entry ended, and everything that is not as it should be, in words."""

    endings: Sequence[tuple[Entry, str]]
    remaining: frozenset[RowKey]
    problems: Sequence[str]

    @property
    def fine(self) -> bool:
        """Whether every fault ended well and only the planted differences remain."""
        return not self.problems


def judged(evidence: Evidence) -> Verdict:
    """Judge every entry by its own ledger line, and every difference and finding by the entries."""
    differing = frozenset(difference.row for difference in evidence.differences)
    said = what_was_said(evidence)
    endings = [(entry, judge(entry, said, differing) or NOT_FINE) for entry in evidence.entries]
    classes = {
        row: ending
        for entry, ending in endings
        if ending not in (VERIFIED, HEALED, NOT_FINE)
        for row in entry.rows
    }
    problems = [
        *_bad_endings(endings, said, differing),
        *_differences_nobody_planted(evidence.differences, classes),
        *_vanished(classes, differing),
        *_findings_nobody_planted(evidence.standing, classes),
        *(f"breaker {name} is open: {why}" for name, why in evidence.breakers.items()),
    ]
    return Verdict(endings, differing & classes.keys(), problems)


def what_was_said(evidence: Evidence) -> Mapping[RowKey, frozenset[str]]:
    """For each row `verified`, if a repair of it held, and the classes it is reported as now."""
    said: defaultdict[RowKey, set[str]] = defaultdict(set)
    for line in evidence.log:
        if line["state"] == VERIFIED:
            said[row_of(line)].add(VERIFIED)
    for line in evidence.standing:
        if line["state"] == REPORTED:
            said[row_of(line)].add(line["kind"])
    return {row: frozenset(words) for row, words in said.items()}


def row_of(line: Line) -> RowKey:
    """The row that a finding is about."""
    return (UUID(line["mailboxid"]), int(line["uid"]))


def _bad_endings(
    endings: Sequence[tuple[Entry, str]],
    said: Mapping[RowKey, frozenset[str]],
    differing: frozenset[RowKey],
) -> Iterator[str]:
    for entry, ending in endings:
        if ending != NOT_FINE:
            continue
        rows = "; ".join(
            f"{place(row)} {'differs' if row in differing else 'agrees'}, reconciler:"
            f" {', '.join(sorted(said.get(row, ()))) or 'nothing'}"
            for row in entry.rows
        )
        yield (
            f"{entry.id} ({entry.kind} on {entry.operation}/{entry.statement}, message"
            f" {entry.messageid}) should end as {' or '.join(entry.accepts)}: {rows}"
        )


def _differences_nobody_planted(
    differences: Sequence[Difference], classes: Mapping[RowKey, str]
) -> Iterator[str]:
    for difference in differences:
        if difference.row not in classes:
            yield f"the tables differ: {difference}"


def _vanished(classes: Mapping[RowKey, str], differing: frozenset[RowKey]) -> Iterator[str]:
    for row, name in classes.items():
        if row not in differing:
            yield f"{place(row)} is reported as {name}, but both tables agree"


def _findings_nobody_planted(
    standing: Sequence[Line], classes: Mapping[RowKey, str]
) -> Iterator[str]:
    for line in standing:
        if line["state"] != REPORTED or classes.get(row_of(line)) != line["kind"]:
            yield (
                f"finding still {line['state']}: {line['kind']} at {place(row_of(line))}:"
                f" {line['sentence']}"
            )


def place(row: RowKey) -> str:
    """A row, as people write it."""
    return f"{row[0]}/{row[1]}"


# --- numbers of the summary ---------------------------------------------------------------------


def endings_by_kind(verdict: Verdict) -> dict[str, Counter[str]]:
    """How faults ended, by kind; the hand-planted count as one kind, the classes as one ending."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry, ending in verdict.endings:
        kind = PLANTED if entry.operation == PLANTED else entry.kind
        table[kind][ending if ending in (VERIFIED, HEALED, NOT_FINE) else REPORTED] += 1
    return dict(sorted(table.items(), key=lambda pair: (pair[0] == PLANTED, pair[0])))


def findings_by_kind(log: Sequence[Line]) -> dict[str, Counter[str]]:
    """How many findings of each kind ever were in each state; `found` counts all of them."""
    seen: defaultdict[str, set[tuple[str, RowKey, int]]] = defaultdict(set)
    for line in log:
        row, found_at = row_of(line), line["found_at"]
        seen[line["kind"]] |= {(FOUND, row, found_at), (line["state"], row, found_at)}
    return {
        kind: Counter(state for state, _row, _found_at in findings)
        for kind, findings in sorted(seen.items())
    }


def second_attempts(log: Sequence[Line]) -> int:
    """How many repairs did not hold at first and were written again."""
    return len({row_of(line) for line in log if line["state"] == REPAIRED and line["attempts"] > 1})


def repair_seconds(log: Sequence[Line]) -> list[float]:
    """For each repair that held: seconds from the oldest write behind it to our write, sorted."""
    written: dict[RowKey, int] = {}
    seconds = []
    for line in log:
        row = row_of(line)
        if line["state"] == REPAIRED:
            written[row] = line["at"]
        elif line["state"] == VERIFIED and row in written and line["oldest"] is not None:
            seconds.append((written[row] - line["oldest"]) / 1e6)
    return sorted(seconds)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed; 0 where there is none."""
    if not ordered:
        return 0.0
    return ordered[math.ceil(share * len(ordered)) - 1]
