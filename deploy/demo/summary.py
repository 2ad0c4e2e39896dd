"""The closing words: tables of what happened, the reported classes explained, the verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from deploy.demo.ledger import HEALED, VERIFIED
from deploy.demo.verdict import (
    NOT_FINE,
    Evidence,
    Verdict,
    endings_by_kind,
    findings_by_kind,
    percentile,
    repair_seconds,
)

REPORTED = "reported"
STATES = (("intended", "repaired"), (VERIFIED, VERIFIED), ("superseded", "superseded"))
MORE_STATES = ((HEALED, HEALED), (REPORTED, REPORTED), ("stuck", "stuck"), ("held", "held"))
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
    "future_write_time": (
        "the wrong cell was written by a clock an hour ahead: a guarded write cannot replace it"
        " yet without overriding a user"
    ),
}


def summary(evidence: Evidence, verdict: Verdict) -> Iterator[str]:
    """All of it, line by line."""
    yield from endings_table(endings_by_kind(verdict))
    yield ""
    yield from findings_table(findings_by_kind(evidence.log))
    seconds = repair_seconds(evidence.log)
    yield (
        f"time from the write to its repair: p50 {percentile(seconds, 0.5):.1f} s,"
        f" p99 {percentile(seconds, 0.99):.1f} s ({len(seconds)} repairs that were seen to hold)"
    )
    yield ""
    yield from classes(verdict)
    yield ""
    yield from closing(evidence, verdict)


def endings_table(table: Mapping[str, Counter[str]]) -> Iterator[str]:
    """How the faults ended."""
    found = {ending for endings in table.values() for ending in endings}
    first = (VERIFIED, HEALED)
    columns = [(name, name) for name in (*first, *sorted(found - {*first, NOT_FINE}))]
    if NOT_FINE in found:
        columns.append((NOT_FINE, NOT_FINE))
    yield from _table("faults, and how each ended", columns, table, "seeded")


def findings_table(table: Mapping[str, Counter[str]]) -> Iterator[str]:
    """What the reconciler's journal says."""
    found = {state for states in table.values() for state in states}
    columns = [pair for pair in (*STATES, *MORE_STATES) if pair[0] in found]
    yield from _table("findings, by the reconciler's journal", columns, table, None)


def _table(
    title: str,
    columns: Sequence[tuple[str, str]],
    table: Mapping[str, Counter[str]],
    total: str | None,
) -> Iterator[str]:
    heads = [total] * bool(total) + [head for _, head in columns]
    widths = [max(len(str(head)), 8) + 2 for head in heads]
    yield f"{title:<40}" + "".join(
        f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)
    )
    for name, counts in table.items():
        values = [counts.total()] * bool(total) + [counts[key] for key, _ in columns]
        shown = "".join(
            f"{value or '–':>{width}}" for value, width in zip(values, widths, strict=True)
        )
        yield f"  {name:<38}{shown}"


def classes(verdict: Verdict) -> Iterator[str]:
    """The reported classes, each with the reason why nothing was written."""
    counted = Counter(
        ending for _, ending in verdict.endings if ending not in (VERIFIED, HEALED, NOT_FINE)
    )
    yield f"reported and left as they are ({len(verdict.remaining)} rows that still differ)"
    for name, number in sorted(counted.items()):
        yield f"  {name} ({number}): {WHY.get(name, 'held for a person')}"


def closing(evidence: Evidence, verdict: Verdict) -> Iterator[str]:
    """The verdict in one line, after what is wrong, if anything is."""
    for problem in verdict.problems[:MOST_PROBLEMS]:
        yield f"WRONG  {problem}"
    more = len(verdict.problems) - MOST_PROBLEMS
    if more > 0:
        yield f"… and {more} more"
    entries = len(evidence.entries)
    if verdict.fine:
        yield (
            f"OK: the full comparison finds exactly the {len(verdict.remaining)} differences that"
            f" must be reported; each of {entries} faults and oddities ended as it may"
        )
    else:
        yield f"NOT OK: {len(verdict.problems)} things are not as they should be"
