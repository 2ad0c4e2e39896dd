"""The closing words: tables of what happened, the reported classes explained, the verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from deploy.demo.sight import REPAIRED, REPORTED
from deploy.demo.verdict import (
    BESIDE,
    FOUND,
    NOT_FINE,
    DemoVerdict,
    Exhibits,
    endings_by_kind,
    findings_by_kind,
    percentile,
    repair_seconds,
    second_attempts,
)
from deploy.mailserver.counters import CURRENT_QUOTA, MAILBOX_COUNTERS
from deploy.mailserver.history import counter_row
from deploy.mailserver.ledger import HEALED, MAILBOX_CONFLICT, VERIFIED

STATES = (FOUND, REPAIRED, VERIFIED, "superseded", HEALED, REPORTED, "stuck", "held")
ENDINGS = (VERIFIED, HEALED, REPORTED, NOT_FINE)
HEADS = {REPAIRED: "repaired"}
MOST_PROBLEMS = 50

WHY = {
    "incomplete_truth_row": (
        "the truth row lacks cells that every message has: copying it would spread the damage"
    ),
    "duplicate_uid": (
        "two messages claim one UID of one mailbox: whichever were projected, the other is hidden"
    ),
    "shadowed_delete": (
        "the row outlived its own delete because two clocks differ: its user deleted it,"
        " so it is not brought back"
    ),
    "ambiguous_range_delete": (
        "one delete took both copies of a message from the truth: which one its user meant to"
        " delete is not known, so the last copy is kept"
    ),
    "content_lost": (
        "one delete took both copies, and James has deleted the content since: the row that its"
        " user kept is the last trace by which the message can be restored"
    ),
    "future_write_time": (
        "the wrong cell was written by a clock an hour ahead: a guarded write cannot replace it"
        " yet without overriding a user"
    ),
    MAILBOX_CONFLICT: (
        "a path names a mailbox that has no row: `reconcile mailboxes` reports it, and repairs only"
        " while all of James is stopped"
    ),
    BESIDE: (
        "an index row of a reported message, or counters that would count it: what they must be"
        " is not known before the message is decided"
    ),
}


def summary(evidence: Exhibits, verdict: DemoVerdict) -> Iterator[str]:
    """All of it, line by line."""
    faults = {
        kind: endings | Counter(seeded=endings.total())
        for kind, endings in endings_by_kind(verdict).items()
    }
    yield from table("faults and how each ended", ("seeded", *ENDINGS), faults)
    yield ""
    yield from table("findings, by the journal", STATES, findings_by_kind(evidence.log))
    seconds = repair_seconds(evidence.log)
    yield (
        f"from a write to the repair of a row: p50 {percentile(seconds, 0.5):.1f} s,"
        f" p99 {percentile(seconds, 0.99):.1f} s; {len(seconds)} repairs were seen to hold,"
        f" {second_attempts(evidence.log)} of them at the second attempt"
    )
    yield ""
    yield from classes(verdict)
    yield ""
    yield from closing(evidence, verdict)


def table(title: str, columns: Sequence[str], rows: Mapping[str, Counter[str]]) -> Iterator[str]:
    """Counts by row and column; columns without any count are left out."""
    shown = [column for column in columns if any(counts[column] for counts in rows.values())]
    yield f"{title:<40}" + "".join(f"{HEADS.get(column, column):>11}" for column in shown)
    for name, counts in rows.items():
        yield f"  {name:<38}" + "".join(f"{counts[column] or '–':>11}" for column in shown)


def classes(verdict: DemoVerdict) -> Iterator[str]:
    """The reported classes, each with the reason why nothing was written."""
    counted = Counter(
        ending for _, ending in verdict.endings if ending not in (VERIFIED, HEALED, NOT_FINE)
    )
    yield f"reported and left as they are ({len(verdict.remaining)} rows that still differ)"
    for name, number in sorted(counted.items()):
        yield f"  {name} ({number}): {WHY.get(name, 'held for a person')}"


def closing(evidence: Exhibits, verdict: DemoVerdict) -> Iterator[str]:
    """The verdict in one line, after what is wrong, if anything is."""
    for problem in verdict.problems[:MOST_PROBLEMS]:
        yield f"WRONG  {problem}"
    more = len(verdict.problems) - MOST_PROBLEMS
    if more > 0:
        yield f"… and {more} more"
    if verdict.fine:
        yield (
            "OK: the full comparison of all tables finds exactly the"
            f" {len(verdict.remaining)} differences that must be reported;"
            f" {counted(evidence, verdict)};"
            f" each of {len(evidence.entries)} faults and oddities ended as it may"
        )
    else:
        yield f"NOT OK: {len(verdict.problems)} things are not as they should be"


def counted(evidence: Exhibits, verdict: DemoVerdict) -> str:
    """Of how many mailboxes and quota roots the counters were judged, and are right."""
    mailboxes = {(MAILBOX_COUNTERS.projection, counter_row(each)) for each in evidence.roots}
    roots = {(CURRENT_QUOTA.projection, counter_row(each)) for each in evidence.roots.values()}
    return (
        f"{len(mailboxes - verdict.beside)} of {len(mailboxes)} mailboxes and"
        f" {len(roots - verdict.beside)} of {len(roots)} quota roots hold no such row, and their"
        " counters are exact"
    )
