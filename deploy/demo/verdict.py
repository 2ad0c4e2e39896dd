"""The closing judgement: what was seeded, what the reconciler says, what really differs. Pure.

The three come from separate code: the ledger (ledger.py), the reconciler's journal, and the full
comparison (full_comparison.py).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from deploy.comparison.messages import Mismatch
from deploy.demo.sight import REPAIRED, REPORTED
from deploy.mailserver.attachments import REFERENCES
from deploy.mailserver.counters import COUNTER_TABLES, CURRENT_QUOTA, MAILBOX_COUNTERS, quota_root
from deploy.mailserver.history import MESSAGES, NO_UID, RowPlace, counter_row
from deploy.mailserver.indexes import APPLICABLE_FLAGS, BY_PROJECTION
from deploy.mailserver.ledger import HEALED, VERIFIED, LedgerEntry, held_rows, judge
from deploy.mailserver.mailbox_statements import MAILBOXES, NAMESPACE
from deploy.mailserver.rights import RIGHTS_PROJECTIONS
from reconcilers.rows.finding import with_reason

NOT_FINE = "NOT FINE"
BESIDE = "beside_a_reported_row"
"""How a fault ends in an index row of a reported message, or in counters that it belongs to."""
PLANTED = "planted"
FOUND = "found"

Line = Mapping[str, Any]
"""A finding of the journal, as `checkpoints.codec` writes it to JSON."""


@dataclass(frozen=True, slots=True)
class Exhibits:
    """All that is judged. `log` is what became of findings, oldest first; `standing` are open.

    `roots` names the quota root of each mailbox.
    """

    entries: Sequence[LedgerEntry]
    log: Sequence[Line]
    standing: Sequence[Line]
    differences: Sequence[Mismatch]
    roots: Mapping[UUID, str] = field(default_factory=dict)
    breakers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DemoVerdict:
    """How each entry ended, and everything that is not as it should be, in words.

    `remaining` are the rows that still differ and may, `beside` the index rows and counters that
    nobody can judge for them.
    """

    endings: Sequence[tuple[LedgerEntry, str]]
    remaining: frozenset[RowPlace]
    beside: frozenset[RowPlace]
    problems: Sequence[str]

    @property
    def fine(self) -> bool:
        """Whether every fault ended well and only the planted differences remain."""
        return not self.problems


def judged(evidence: Exhibits) -> DemoVerdict:
    """Judge every entry by its own ledger line, and every difference and finding by the entries."""
    differing = frozenset(difference.place for difference in evidence.differences)
    said = what_was_said(evidence)
    beside = beside_reported_rows(evidence)
    endings = [(entry, _ending(entry, said, differing, beside)) for entry in evidence.entries]
    classes = {
        place: ending
        for entry, ending in endings
        if ending not in (VERIFIED, HEALED, BESIDE, NOT_FINE)
        for place in entry.places
    }
    problems = [
        *_bad_endings(endings, said, differing, evidence.roots),
        *_differences_nobody_planted(evidence.differences, classes.keys() | beside),
        *_vanished(classes, differing),
        *_findings_nobody_planted(evidence.standing, classes, beside),
        *_nothing_shown(endings),
        *(f"breaker {name} is open: {why}" for name, why in evidence.breakers.items()),
    ]
    return DemoVerdict(endings, differing & classes.keys(), beside, problems)


def what_was_said(evidence: Exhibits) -> Mapping[RowPlace, frozenset[str]]:
    """For each place `verified`, if a repair of it held, and the classes it is reported as now."""
    said: defaultdict[RowPlace, set[str]] = defaultdict(set)
    for line in evidence.log:
        if line["state"] == VERIFIED:
            said[place_of(line)].add(VERIFIED)
    for line in evidence.standing:
        if line["state"] == REPORTED:
            said[place_of(line)].add(line["kind"])
    return {place: frozenset(words) for place, words in said.items()}


def place_of(line: Line) -> RowPlace:
    """What a finding is about: a row, or what a mailbox or a quota root has one of.

    One of a whole table names nothing.
    """
    projection = line["projection"]
    if projection == CURRENT_QUOTA.projection:
        return (projection, counter_row(str(line["quotaroot"])))
    if projection == REFERENCES:
        return (projection, (UUID(line["attachmentidasuuid"]), line["message"]))
    mailboxid = UUID(line["mailboxid"]) if line["mailboxid"] else UUID(int=0)
    if projection in {APPLICABLE_FLAGS, MAILBOX_COUNTERS.projection}:
        return (projection, (mailboxid, NO_UID))
    if projection in (*RIGHTS_PROJECTIONS, MAILBOXES):
        return (projection, (mailboxid, line.get("username") or line.get("name") or NO_UID))
    return (projection, (mailboxid, int(line["uid"] or NO_UID)))


def beside_reported_rows(evidence: Exhibits) -> frozenset[RowPlace]:
    """The index rows and counters of which nobody can say what they must be.

    That follows from the plan and the tables alone: where a message that may end as reported
    differs, its index rows, its mailbox's counters and its user's quota are not judged. Nor is the
    quota of a user one of whose mailboxes is in conflict.
    """
    differing = {each.row for each in evidence.differences if each.projection == MESSAGES}
    reported = differing & held_rows(evidence.entries)
    places = {(projection, row) for row in reported for projection in BY_PROJECTION}
    for mailboxid in {mailboxid for mailboxid, _ in reported}:
        places.add((MAILBOX_COUNTERS.projection, counter_row(mailboxid)))
        if mailboxid in evidence.roots:
            places.add((CURRENT_QUOTA.projection, counter_row(evidence.roots[mailboxid])))
    for _, user in {each.row for each in evidence.differences if each.projection == MAILBOXES}:
        root = quota_root(NAMESPACE, str(user))
        places.add((CURRENT_QUOTA.projection, counter_row(root)))
    return frozenset(places)


def _ending(
    entry: LedgerEntry,
    said: Mapping[RowPlace, frozenset[str]],
    differing: frozenset[RowPlace],
    beside: frozenset[RowPlace],
) -> str:
    otherwise = BESIDE if beside.intersection(entry.places) else NOT_FINE
    return judge(entry, said, differing) or otherwise


def _bad_endings(
    endings: Sequence[tuple[LedgerEntry, str]],
    said: Mapping[RowPlace, frozenset[str]],
    differing: frozenset[RowPlace],
    roots: Mapping[UUID, str],
) -> Iterator[str]:
    names = {counter_row(root): root for root in roots.values()}
    for entry, ending in endings:
        if ending != NOT_FINE:
            continue
        places = "; ".join(
            f"{names.get(place[1]) or in_words(place)}"
            f" {'differs' if place in differing else 'agrees'}, reconciler:"
            f" {', '.join(sorted(said.get(place, ()))) or 'nothing'}"
            for place in entry.places
        )
        yield (
            f"{entry.id} ({entry.kind} on {entry.operation}/{entry.statement}, message"
            f" {entry.messageid}) should end as {' or '.join(entry.accepts)}: {places}"
        )


def _differences_nobody_planted(
    differences: Sequence[Mismatch], expected: Set[RowPlace]
) -> Iterator[str]:
    for difference in differences:
        if difference.place not in expected:
            yield f"the tables differ: {difference}"


def _vanished(classes: Mapping[RowPlace, str], differing: frozenset[RowPlace]) -> Iterator[str]:
    for place, name in classes.items():
        if place not in differing:
            yield f"{in_words(place)} is reported as {name}, but both tables agree"


def _findings_nobody_planted(
    standing: Sequence[Line], classes: Mapping[RowPlace, str], beside: frozenset[RowPlace]
) -> Iterator[str]:
    for line in standing:
        place = place_of(line)
        planted = line["state"] == REPORTED and classes.get(place) == line["kind"]
        if not planted and place not in beside:
            yield (
                f"finding still {line['state']}: {line['kind']} at {in_words(place)}:"
                f" {with_reason(line['sentence'], line['state'], _why(line))}"
            )


def _why(line: Line) -> str:
    return str((line.get("waits") or {}).get("why", ""))


def _nothing_shown(endings: Sequence[tuple[LedgerEntry, str]]) -> Iterator[str]:
    """What is not judged must not be all there is."""
    told: defaultdict[str, set[str]] = defaultdict(set)
    for entry, ending in endings:
        told[entry.projection].add(ending)
    for projection, endings_there in told.items():
        if endings_there == {BESIDE}:
            yield f"every fault in {projection} lies beside a reported row: nothing was shown"


def in_words(place: RowPlace) -> str:
    """A place, as people write it."""
    projection, (first, second) = place
    return f"{projection} {first}/{second}"


# --- numbers of the summary ---------------------------------------------------------------------


def endings_by_kind(verdict: DemoVerdict) -> dict[str, Counter[str]]:
    """How faults ended, by projection and kind; planted ones are one kind, classes one ending."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry, ending in verdict.endings:
        fault = f"{entry.projection} {entry.kind}"
        kind = PLANTED if entry.operation == PLANTED else fault
        table[kind][ending if ending in (VERIFIED, HEALED, NOT_FINE) else REPORTED] += 1
    return dict(sorted(table.items(), key=lambda pair: (pair[0] == PLANTED, pair[0])))


def findings_by_kind(log: Sequence[Line]) -> dict[str, Counter[str]]:
    """How many findings of each projection and kind were ever in each state; `found`: of all."""
    seen: defaultdict[str, set[tuple[str, RowPlace, int]]] = defaultdict(set)
    for line in log:
        place, found_at = place_of(line), line["found_at"]
        kind = f"{line['projection']} {line['kind']}"
        seen[kind] |= {(FOUND, place, found_at), (line["state"], place, found_at)}
    return {
        kind: Counter(state for state, _place, _found_at in findings)
        for kind, findings in sorted(seen.items())
    }


def second_attempts(log: Sequence[Line]) -> int:
    """How many repairs of rows did not hold at first and were written again."""
    return len({place_of(line) for line in _of_rows(log, REPAIRED) if line["attempts"] > 1})


def repair_seconds(log: Sequence[Line]) -> list[float]:
    """For each repair that held: seconds from the oldest write behind it to our write, sorted.

    Counters are left out: there is no telling when one went wrong.
    """
    written: dict[RowPlace, int] = {}
    seconds = []
    for line in _of_rows(log, REPAIRED, VERIFIED):
        slot = place_of(line)
        if line["state"] == REPAIRED:
            written[slot] = line["at"]
        elif slot in written and line["oldest"] is not None:
            seconds.append((written[slot] - line["oldest"]) / 1e6)
    return sorted(seconds)


def _of_rows(log: Sequence[Line], *states: str) -> Iterator[Line]:
    for line in log:
        if line["state"] in states and line["projection"] not in COUNTER_TABLES:
            yield line


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed; 0 where there is none."""
    if not ordered:
        return 0.0
    return ordered[math.ceil(share * len(ordered)) - 1]
