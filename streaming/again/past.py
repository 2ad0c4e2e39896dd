"""Rows of the past on a worker: finds those that are left together, by batched reads.

A row that the truth lacks is judged by the rules of the stream, without a serial read. A row that
they only report, because no delete is known, is left with others. All other rows are handed over
to the stream, which confirms them. Nothing here writes to James's tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from checkpoints.lost_rows import LostRowsStore
from reconcilers.declared.family import Projection
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import COVERED, LostRow, births, covered, place_of, reason_of
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect
from streaming.steps.confirmed_suspect import ConfirmedSuspect
from streaming.steps.examine import Examiner
from streaming.steps.ports import ConfirmTables, MessageTables
from streaming.steps.removals import Removals

ROWS_AT_ONCE = 2_000


@dataclass(slots=True)
class LeftRows:
    """Rows that are left for one reason: how many, their groups, and at most ``most`` + 1 suspects.

    ``born`` are the first and the last time (µs) at which one of their sources was created.
    """

    most: int
    rows: int = 0
    groups: set[KeyValue] = field(default_factory=set)
    suspects: list[Suspect] = field(default_factory=list)
    born: tuple[Micros, Micros] | None = None

    def add(self, suspect: Suspect) -> None:
        """Add a row."""
        self.merge(LeftRows(0, 1, {suspect.slot.group}, [suspect], _span(births(suspect.sources))))

    def merge(self, other: LeftRows) -> None:
        """Add other rows that are left for the same reason."""
        self.rows += other.rows
        self.groups |= other.groups
        self.suspects += other.suspects[: self.most + 1 - len(self.suspects)]
        self.born = _span([*(self.born or ()), *(other.born or ())])


def _span(times: Sequence[Micros]) -> tuple[Micros, Micros] | None:
    return (min(times), max(times)) if times else None


@dataclass(slots=True)
class SiftedRows:
    """The suspects that are ``handed_over``, and those that are ``left``, by reason.

    ``covered`` counts those handed over because a person has accepted their reason. ``told`` counts
    rows, in neither, whose own finding already says the same.
    """

    handed_over: list[Suspect] = field(default_factory=list)
    left: dict[Kind, LeftRows] = field(default_factory=dict)
    covered: Counter[Kind] = field(default_factory=Counter)
    told: int = 0


@dataclass(frozen=True, slots=True)
class PastRows:
    """Separates rows of the past from others; up to ``most`` have findings of their own.

    ``examiner`` is that of the listing.
    """

    examiner: Examiner
    tables: MessageTables
    store: LostRowsStore
    most: int

    def sift(self, suspects: Iterable[Suspect], at: Micros) -> SiftedRows:
        """Sift suspects, and store undecided rows as seen ``at`` (µs)."""
        found, extra = SiftedRows(), list[Suspect]()
        for each in suspects:
            (extra if self._may_be_left(each) else found.handed_over).append(each)
        if extra:
            groups = self._groups()
            removals = Removals(
                *(self.examiner.family, self.examiner.projection, self.tables),
                self.examiner.rules.empty_truth_min_rows,
            )
            for start in range(0, len(extra), ROWS_AT_ONCE):
                some = extra[start : start + ROWS_AT_ONCE]
                reasons, told = self._reasons(some, removals)
                new = [each for each in some if each.slot not in told]
                found.told += len(some) - len(new)
                self._sift(new, reasons, groups, at, found)
        return found

    def _may_be_left(self, suspect: Suspect) -> bool:
        listed = suspect.projection == self.examiner.projection.name
        return listed and suspect.kind is Kind.EXTRA_ROW and suspect.unreadable is None

    def _groups(self) -> Mapping[Kind, Finding | None]:
        """By reason, the finding that stands for all rows left for it."""
        family = self.examiner.family
        places = {reason: place_of(family, reason) for reason in COVERED}
        found = self.examiner.journal.recall(family, family.listing.name, places.values())
        return {reason: found.get(place) for reason, place in places.items()}

    def _sift(
        self,
        some: Sequence[Suspect],
        reasons: Mapping[Slot, Kind],
        groups: Mapping[Kind, Finding | None],
        at: Micros,
        found: SiftedRows,
    ) -> None:
        family = self.examiner.family
        known = self.store.at(family, reasons)
        keep = list[LostRow]()
        for suspect in some:
            reason = reasons.get(suspect.slot)
            if reason is None:
                found.handed_over.append(suspect)
                continue
            row, before = LostRow(suspect.slot, reason, at, at), known.get(suspect.slot)
            if before is not None and before.reason is reason:
                row = replace(before, seen_at=at)
            keep.append(row)
            if covered(groups[reason], row, reason):
                found.covered[reason] += 1
                found.handed_over.append(suspect)
            else:
                found.left.setdefault(reason, LeftRows(self.most)).add(suspect)
        self.store.keep(family, keep)

    def _reasons(
        self, some: Sequence[Suspect], removals: Removals
    ) -> tuple[Mapping[Slot, Kind], Collection[Slot]]:
        """The reasons of undecided rows, and the rows whose own finding already states one.

        Both are empty if something cannot be read.
        """
        confirmation, tables = self.examiner.confirmation, TablesInBulk(self.tables)
        contents = None if self.examiner.family.remembered else confirmation.contents
        bulk = replace(
            self.examiner,
            confirmation=replace(confirmation, tables=tables, contents=contents),
            together=None,
        )
        asked = [replace(each, suspected=each.kind) for each in some]
        try:
            cases = bulk.confirmed(asked, bulk.clock(), "")
        except (ReadFailed, Refused):
            return {}, ()  # all are handed over, and the stream finds the unreadable one
        reasons, told = dict[Slot, Kind](), set[Slot]()
        for case in cases:
            reason = self._reason(bulk, case)
            if reason is None:
                continue
            if case.previous is None:
                reasons[case.slot] = _where_most_is_lost(case, reason, removals)
            elif _is_told(case.previous, reason):
                told.add(case.slot)
        return reasons, told

    def _reason(self, bulk: Examiner, case: ConfirmedSuspect) -> Kind | None:
        if case.hold is not None or case.suspect.unreadable is not None:
            return None
        return reason_of(bulk.family, case.seen, bulk.verdict(case), bulk.rules.delay)


def _is_told(finding: Finding, reason: Kind) -> bool:
    """Whether a row's own finding states this reason, and nobody has accepted it."""
    states_it = finding.kind is reason and finding.state is State.REPORTED
    return states_it and reason not in finding.accepted_kinds


def _where_most_is_lost(case: ConfirmedSuspect, reason: Kind, removals: Removals) -> Kind:
    """The reason, or `MAILBOX_WITHOUT_TRUTH` if its mailbox may have lost most of its truth."""
    if reason is Kind.UNRESOLVED:
        return reason
    try:
        trusted = removals.may_lose_rows(case.slot.group)
    except ReadFailed:
        trusted = False
    return reason if trusted else Kind.MAILBOX_WITHOUT_TRUTH


@dataclass(frozen=True, slots=True)
class TablesInBulk:
    """The reads of a confirmation at the consistency of looks; no write rests on them."""

    tables: ConfirmTables

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots."""
        return self.tables.projection_rows(projection, slots)

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows at these slots, with write times (µs)."""
        return self.tables.projection_with_times(projection, slots)

    def truth_with_times(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source, with write times (µs)."""
        return self.tables.truth_with_times(sources)

    truth_serially = truth_with_times
