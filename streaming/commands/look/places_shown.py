"""The answer of `reconcile explain` for a place, as lines and as JSON. Lines have UTC times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from checkpoints.clock import to_seconds
from checkpoints.codec import (
    Json,
    finding_to_json,
    row_to_json,
    write_to_json,
)
from reconcilers.declared.family import Family
from reconcilers.declared.writes import AddRow, AddToSet, RemoveFromSet, SetCells, Write
from reconcilers.rows.decision import ACCEPTABLE
from reconcilers.sweep.lost_rows import COVERED
from reconcilers.words.key import named, text_of
from reconcilers.words.model import (
    Consistent,
    LookAgain,
    Micros,
    Repair,
    Report,
    Row,
    Value,
    Verdict,
)
from streaming.steps.explain import ExplainedPlace, ExplainedProjection, Remembered

NOTHING = "-"
WIDTH = 36
"""Of a cell's value on a terminal."""
TIME = 24
"""Of a write time."""

LEFT_WITH_OTHERS = (
    "it has no finding of its own; if a sweep has left it with others, a person may decide on all:"
    " reconcile findings --kind past_rows, or --kind truth_lost_rows"
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides besides the place itself.

    ``hindrances`` are the breakers and pauses that hold repairs now. ``content`` is the state of
    each source's content.
    """

    hindrances: tuple[str, ...]
    content: dict[str, str]
    watched_since: Micros | None
    swept_at: Micros | None


def iso(at: Micros | None) -> str:
    """A time (µs) to the ms; a dash for None."""
    if at is None:
        return NOTHING
    return datetime.fromtimestamp(to_seconds(at), UTC).isoformat(timespec="milliseconds")


def place_lines(family: Family, place: ExplainedPlace, around: Surroundings) -> Iterator[str]:
    """All of one place, as lines."""
    first, *indexes = place.projections
    yield f"{family.place(place.slot)}  ({text_of(place.slot)})"
    yield from _both_sides(family, first)
    for each in indexes:
        yield f"  {each.projection.name}: {_index_row(each)}"
    yield from _memory_lines(place.memory, around)
    for source, found in around.content.items():
        owner = family.truth.owner
        kept = "content" if owner is None else owner.label
        yield f"  {kept} of {family.truth.source.label} {source}: {found}"
    for each in place.projections:
        yield from _verdict_lines(each, around)


def _both_sides(family: Family, listing: ExplainedProjection) -> Iterator[str]:
    seen, truth = listing.case.seen, family.truth
    if not seen.truths:
        yield f"  {truth.table}: no row"
    if seen.actual is None:
        yield f"  {listing.projection.table}: no row"
    if not seen.truths and seen.actual is None:
        return
    head = f"    {'cell':<20} {truth.table:<{WIDTH}} {'written':<{TIME}} "
    for claiming in seen.truths or (None,):
        yield f"{head}{listing.projection.table}"
        for name in _columns((claiming, seen.actual)):
            yield _cell_line(name, claiming, seen.actual)


def _columns(rows: Iterable[Row | None]) -> list[str]:
    return list(dict.fromkeys(name for row in rows if row is not None for name in row.cells))


def _cell_line(name: str, truth: Row | None, listed: Row | None) -> str:
    sides = [(_text(row, name), _written(row, name)) for row in (truth, listed)]
    differs = "differs " if truth and listed and truth.get(name) != listed.get(name) else ""
    ((here, at), (there, then)) = sides
    return f"    {name:<20} {here:<{WIDTH}} {at:<{TIME}} {there:<{WIDTH}} {then} {differs}".rstrip()


def _text(row: Row | None, name: str) -> str:
    if row is None:
        return ""
    text = _shown(row.get(name))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _shown(value: Value) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(value))}}}"
    return str(value)


def _written(row: Row | None, name: str) -> str:
    at = None if row is None else row.written.get(name)
    return "" if at is None else iso(at)


def _index_row(each: ExplainedProjection) -> str:
    return "no row" if each.case.seen.actual is None else "has a row"


def _memory_lines(memory: Remembered, around: Surroundings) -> Iterator[str]:
    since = around.watched_since
    heard = f"every change since {iso(since)}" if since else "changes, not known since when"
    whole = f", the whole truth by {iso(around.swept_at)}" if around.swept_at else ", incomplete"
    yield f"  lineage: received {heard}{whole}"
    for entry in memory.entries:
        side = "in the truth" if entry.in_truth else "only in the projection"
        read = f", read with its whole partition {iso(entry.recorded_at)}"
        yield f"    {entry.source} was seen here {side}{read if entry.recorded_at else ''}"
    for source, deletes in memory.truth_deletes.items():
        named = [at for times in deletes.by_slot.values() for at in times]
        for at in sorted({*deletes.ranges, *named}):
            yield f"    a delete of {source} in the truth was received, of {iso(at)}"
    of_row = memory.projection_deletes
    for at in sorted(of_row.received):
        yield f"    a delete of this projection row was received, of {iso(at)}"
    if of_row.sent is not None:
        yield f"    the reconciler deleted this projection row at {iso(of_row.sent)}"
    heard_of = any(each.ranges or each.by_slot for each in memory.truth_deletes.values())
    if not memory.entries and not heard_of and not of_row.ends:
        yield "    nothing is remembered of this place"


# --- what follows


def _verdict_lines(each: ExplainedProjection, around: Surroundings) -> Iterator[str]:
    name, verdict = each.projection.name, each.verdict
    match verdict:
        case Consistent():
            yield f"  {name}: RIGHT"
        case LookAgain(reason=reason):
            yield f"  {name}: WAITS: {reason}"
    if each.later is not None:
        yield f"  {name}: and later, if nothing changes:"
    yield from _consequence(each, around)
    finding = each.case.previous
    if finding is not None:
        told = f"{finding.kind} {finding.state} since {iso(finding.found_at)}"
        yield f"    open finding: {told}, {finding.attempts} attempts: {finding.told}"
        if finding.next_look is not None:
            yield f"    looked at again automatically: {iso(finding.next_look)}"


def _consequence(each: ExplainedProjection, around: Surroundings) -> Iterator[str]:
    name, settled, planned = each.projection.name, each.settled, each.planned
    match settled:
        case Report(kind=kind, sentence=sentence):
            yield f"  {name}: NOT REPAIRED: {kind}: {sentence}"
            if each.case.previous is None and kind in COVERED:
                yield f"    {LEFT_WITH_OTHERS}"
            elif kind in ACCEPTABLE:
                key = text_of(each.case.slot)
                yield f"    a person may decide: reconcile findings --accept {key}"
        case Repair(sentence=sentence):
            if isinstance(planned, Report):
                yield f"  {name}: NOT REPAIRED: {sentence}; {planned.sentence}"
                return
            yield f"  {name}: WRONG: {sentence}"
            for write in planned or ():
                yield f"    a stream in repair mode sends: {_write_text(write)}"
            on_hold = () if each.case.hold is None else (str(each.case.hold),)
            yield from (f"    but it is held now: {why}" for why in (*on_hold, *around.hindrances))
        case Consistent() if each.later is not None:
            yield f"  {name}: RIGHT"


def _write_text(write: Write) -> str:
    match write:
        case SetCells(cells=cells):
            what = f"set {', '.join(sorted(cells))} as in the truth"
        case AddToSet(column=column, elements=elements):
            what = f"add {', '.join(sorted(elements))} to {column}"
        case RemoveFromSet(column=column, elements=elements):
            what = f"remove {', '.join(sorted(elements))} from {column}"
        case AddRow():
            what = "add the row"
        case _:
            what = "delete the row"
    return f"{what}, with write time {iso(write.at)}"


# --- for machines


def place_json(family: Family, place: ExplainedPlace, around: Surroundings) -> Json:
    """All of one place, as one JSON object; times are µs."""
    listing = place.projections[0].case.seen
    return {
        **named(family.key, place.slot.key),
        "truth": [row_to_json(row) for row in listing.truths],
        "content": around.content,
        "memory": {
            "watched_since": around.watched_since,
            "swept_at": around.swept_at,
            "entries": [
                {
                    "source": str(each.source),
                    "in_truth": each.in_truth,
                    "recorded_at": each.recorded_at,
                    "had_at": each.had_at,
                }
                for each in place.memory.entries
            ],
            "truth_deletes": {
                str(source): sorted(
                    {*each.ranges, *(at for some in each.by_slot.values() for at in some)}
                )
                for source, each in place.memory.truth_deletes.items()
            },
            "projection_deletes": sorted(place.memory.projection_deletes.received),
            "deleted_by_us_at": place.memory.projection_deletes.sent,
        },
        "projections": [_projection_json(family, each) for each in place.projections],
        "held_by": list(around.hindrances),
    }


def _projection_json(family: Family, each: ExplainedProjection) -> Json:
    actual, finding = each.case.seen.actual, each.case.previous
    planned = () if isinstance(each.planned, Report) else each.planned or ()
    return {
        "projection": each.projection.name,
        "row": None if actual is None else row_to_json(actual),
        "verdict": _verdict_json(each.verdict),
        "later": None if each.later is None else _verdict_json(each.later),
        "writes": [write_to_json(write, family) for write in planned],
        "hold": None if each.case.hold is None else str(each.case.hold),
        "finding": None if finding is None else finding_to_json(finding, family),
    }


def _verdict_json(verdict: Verdict) -> Json:
    match verdict:
        case Consistent():
            return {"verdict": "right"}
        case LookAgain(difference=difference, reason=reason):
            return {"verdict": "look_again", "kind": str(difference.kind), "why": reason}
        case Report(kind=kind, sentence=sentence):
            return {"verdict": "report", "kind": str(kind), "why": sentence}
        case Repair(difference=difference, sentence=sentence):
            return {"verdict": "repair", "kind": str(difference.kind), "why": sentence}
