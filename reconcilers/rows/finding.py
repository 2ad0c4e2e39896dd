"""A finding and its life: found, repaired, verified. Pure.

::

    (difference) ──▶ intended ──▶ verified            equal at the next look, whoever did it
                        │  ▲
                        │  └──── not held: differs, nothing newer than our write: next attempt
                        ├──────▶ superseded           a newer write: judged again as a new finding
                        ├──────▶ parked               its table refuses writes: one finding for all
                        └──────▶ stuck                after the last attempt; `findings --retry`
    (reported class) ─▶ reported ─▶ healed            for a person; equal at a later look
    (limits)         ─▶ held     ─▶ judged again      `Finding.waits` says for what
    (observe mode)   ─▶ observed ─▶ healed
    (systematic)     ─▶ held     ─▶ healed           one for many rows; swept when accepted
    (rows of the past)▶ reported ─▶ healed           one for many rows; swept when accepted
    (a person)       ─▶ undoing  ─▶ undone            the before-image is back; its key is on hold
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from reconcilers.declared.writes import AddToCounter, AddToSet, RemoveFromSet, SetCells, Write
from reconcilers.rows.acceptance import NONE_ACCEPTED, Accepted, Reason
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Consistent,
    Difference,
    Kind,
    LookAgain,
    Micros,
    Repair,
    Report,
    Row,
    Slot,
    Verdict,
)
from reconcilers.words.waiting import Wait, Waiting


class State(StrEnum):
    """The state of a finding. *verified* and the states after it close the finding."""

    INTENDED = "intended"
    STUCK = "stuck"
    REPORTED = "reported"
    HELD = "held"
    OBSERVED = "observed"
    VERIFIED = "verified"
    SUPERSEDED = "superseded"
    HEALED = "healed"
    PARKED = "parked"
    UNDOING = "undoing"
    UNDONE = "undone"


WAITING = frozenset({State.HELD, State.OBSERVED})


def with_reason(sentence: str, state: str, why: str) -> str:
    """What differs, and why nothing is done about it, in one sentence."""
    held = "would be held" if state == State.OBSERVED else "held"
    return f"{sentence}; {held}: {why}" if why else sentence


AND = ", "
"""The separator of a finding's sources, if several may claim its row."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference at one slot of one projection, as the journal stores it.

    ``source`` is the message as far as it is known; ``sources`` splits it if several may claim the
    row. Times are µs. ``oldest`` is the write time of the oldest change behind it. ``batch`` names
    the batch that wrote last, so that its re-execution is no new attempt; ``tried_at`` is when.
    ``writes`` and ``before`` are the last repair and its before-image. ``next_look`` is when the
    key is published again, None if only an event or a person wakes it. ``sentence`` says what
    differs, and ``waits`` what a held or observed finding waits for. A stuck one keeps the wait of
    a refusing table. ``accepted`` is read with the finding; only a person's decision writes it.
    """

    family: str
    projection: str
    slot: Slot
    source: str | None
    kind: Kind
    state: State
    sentence: str
    found_at: Micros
    oldest: Micros | None = None
    attempts: int = 0
    batch: str = ""
    tried_at: Micros = 0
    before: Row | None = None
    writes: tuple[Write | AddToCounter, ...] = ()
    next_look: Micros | None = None
    accepted: frozenset[Accepted] = NONE_ACCEPTED
    truth: tuple[Row, ...] = ()
    waits: Waiting | None = None

    @property
    def told(self) -> str:
        """The sentence with what the finding waits for, for people."""
        waits = self.waits if self.state in WAITING else None
        return with_reason(self.sentence, self.state, str(waits or ""))

    @property
    def wait(self) -> Wait | None:
        """What it waits for, without the text; None unless it is held or observed."""
        return self.waits.wait if self.waits is not None and self.state in WAITING else None

    @property
    def reason(self) -> Reason:
        """What a person accepts who accepts this finding now."""
        error = self.error if self.kind is Kind.LARGE_CORRECTION else {}
        return Reason(self.kind, self.wait, tuple(sorted(error.items())))

    @property
    def error(self) -> dict[str, int]:
        """The error of a counter, stored minus right, by sum; empty for other findings."""
        stored = {} if self.before is None else self.before.cells
        right = self.truth[0].cells if self.truth else {}
        pairs = {name: (stored[name], right[name]) for name in stored if name in right}
        return {
            name: one - other
            for name, (one, other) in pairs.items()
            if isinstance(one, int) and isinstance(other, int)
        }

    @property
    def accepted_kinds(self) -> frozenset[Kind]:
        """The kinds that a person has accepted for it."""
        return frozenset(each.reason.kind for each in self.accepted)

    @property
    def accepted_at(self) -> Micros | None:
        """When a person has last accepted it (µs), None if nobody has."""
        return max((each.at for each in self.accepted), default=None)

    def is_of_older(self, row: Row | None, now: Micros) -> bool:
        """Whether the row was written after a person accepted this untried finding (µs)."""
        at, newest = self.accepted_at, None if row is None else row.newest
        return not self.writes and at is not None and newest is not None and at < newest <= now

    @property
    def sources(self) -> tuple[str, ...]:
        """Its sources one by one; empty if none is known."""
        return tuple(self.source.split(AND)) if self.source else ()

    def without_rows(self) -> Finding:
        """The finding without rows and writes, small enough to keep thousands in memory."""
        return replace(self, before=None, writes=(), truth=())


class Action(StrEnum):
    """What to do with a slot now, from its past and the verdict."""

    NOTHING = "nothing"
    LOOK_AGAIN = "look_again"
    LOOK_LATER = "look_later"
    CLOSE = "close"
    KEEP = "keep"
    REPORT = "report"
    REPAIR = "repair"
    STICK = "stick"


@dataclass(frozen=True, slots=True)
class Step:
    """An action, its attempt (from 0), the previous finding's end, and the reason to look again."""

    action: Action
    attempt: int = 0
    ends_as: State | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a repair is tried before it is stuck, and how far (µs) attempts are apart."""

    most: int = 3
    apart: Micros = 0


@dataclass(frozen=True, slots=True)
class Now:
    """The current batch, and when (µs) its confirmation began."""

    batch: str
    at: Micros


def advance(
    previous: Finding | None, verdict: Verdict, seen: Seen, now: Now, attempts: Attempts
) -> Step:
    """The next step in a finding's life. A failure of the infrastructure is no attempt."""
    match verdict:
        case Consistent():
            return _agreed(previous, now, attempts)
        case LookAgain(reason=reason):
            return Step(Action.LOOK_AGAIN, reason=reason)
        case Report(kind=kind):
            return _reported(previous, kind, seen, now)
        case Repair():
            return _differs(previous, verdict, seen, now, attempts)


def _agreed(previous: Finding | None, now: Now, attempts: Attempts) -> Step:
    if previous is None:
        return Step(Action.NOTHING)
    ours = previous.state in {State.INTENDED, State.STUCK} and previous.writes
    if ours and _just_tried(previous, now, attempts):
        return Step(Action.LOOK_AGAIN, reason="its repair must hold for a delay")
    return Step(Action.CLOSE, ends_as=State.VERIFIED if ours else State.HEALED)


def _reported(previous: Finding | None, kind: Kind, seen: Seen, now: Now) -> Step:
    if previous is None:
        return Step(Action.REPORT)
    older = previous.is_of_older(seen.actual, now.at)
    same = previous.kind == kind and previous.state is State.REPORTED and not older
    unread = kind is Kind.UNREADABLE  # it proves nothing about the repair
    if same or (unread and previous.state in {State.INTENDED, State.STUCK}):
        return Step(Action.KEEP)
    ended = not unread and (older or _is_another_row(previous, seen.actual))
    return Step(Action.REPORT, ends_as=State.SUPERSEDED if ended else None)


def _is_another_row(previous: Finding, now: Row | None) -> bool:
    """Whether our removal has taken the row, or a cell is newer than our writes and all before."""
    ours = [write.at for write in previous.writes if isinstance(write, Write)]
    if not ours or now is None:
        return bool(ours) and previous.kind is Kind.EXTRA_ROW
    before = previous.before.newest if previous.before is not None else None
    return (now.newest or 0) > max(*ours, before or 0)


def _differs(
    previous: Finding | None, verdict: Repair, seen: Seen, now: Now, attempts: Attempts
) -> Step:
    if previous is None or not previous.writes:
        return Step(Action.REPAIR)
    if newer_than_ours(previous, verdict.difference, seen):
        return Step(Action.REPAIR, ends_as=State.SUPERSEDED)
    if previous.batch == now.batch:
        return Step(Action.REPAIR, attempt=max(previous.attempts - 1, 0))
    return _did_not_hold(previous, now, attempts)


def _did_not_hold(previous: Finding, now: Now, attempts: Attempts) -> Step:
    if _just_tried(previous, now, attempts):
        return Step(Action.LOOK_AGAIN, reason="its repair was tried less than a delay ago")
    if previous.state is State.STUCK:
        return Step(Action.KEEP)
    if previous.attempts >= attempts.most:
        return Step(Action.STICK, attempt=previous.attempts)
    return Step(Action.REPAIR, attempt=previous.attempts)


def _just_tried(previous: Finding, now: Now, attempts: Attempts) -> bool:
    """Whether our write is less than a delay old: nothing is verified or counted until then."""
    return now.at < previous.tried_at + attempts.apart


def newer_than_ours(previous: Finding, difference: Difference, seen: Seen) -> bool:
    """Whether the current difference was written after our last write to it, or never by us."""
    writes = tuple(write for write in previous.writes if isinstance(write, Write))
    if previous.kind != difference.kind:
        return True
    if difference.kind is Kind.MISSING_ROW or seen.actual is None:
        return False
    if difference.kind is Kind.EXTRA_ROW:
        return (seen.actual.newest or 0) > max(write.at for write in writes)
    ours = _write_times_by_column(writes)
    return any(
        column not in ours or _written(seen.actual, column, writes[0]) > ours[column]
        for column in difference.columns
    )


def _written(row: Row, column: str, write: Write) -> Micros:
    """When a cell was written (µs), 0 if unknown; a set has the time of its guard cell."""
    projection = write.projection
    if column in projection.sets and projection.write_time_of_sets is not None:
        column = projection.write_time_of_sets
    return row.written.get(column, 0)


def _write_times_by_column(writes: tuple[Write, ...]) -> dict[str, Micros]:
    times: dict[str, Micros] = {}
    for write in writes:
        match write:
            case SetCells():
                times |= dict.fromkeys(write.cells, write.at)
            case AddToSet() | RemoveFromSet():
                times[write.column] = write.at
    return times
