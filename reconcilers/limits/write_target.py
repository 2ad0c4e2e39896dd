"""What is about to be written, as pauses and pilots see it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.declared.family import Projection
from reconcilers.declared.tally import Tally
from reconcilers.words.model import KeyValue, Kind, Slot

ALL, REMOVALS = "all", "removals"
"""What can be paused besides one projection or tally."""


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What is about to be written.

    A pause of one of ``names`` covers it. ``group`` is a mailbox or the key of a quota root; None
    if no single place is meant, which no pilot holds back. ``table`` is that of a counter.
    """

    names: frozenset[str]
    system: str = ""
    kind: Kind | None = None
    group: KeyValue | None = None
    table: str = ""

    @property
    def is_removal(self) -> bool:
        """Whether the write could lose mail."""
        return REMOVALS in self.names


EVERYTHING = WriteTarget(frozenset({ALL}))


def repair_of(projection: Projection, kind: Kind, slot: Slot | None = None) -> WriteTarget:
    """The target of a repair of a row. A removal from an index loses no mail."""
    removal = kind is Kind.EXTRA_ROW and not projection.is_index
    names = frozenset({ALL, projection.name, *((REMOVALS,) if removal else ())})
    return WriteTarget(names, projection.name, kind, None if slot is None else slot.group)


def correction_of(tally: Tally, key: KeyValue | None = None) -> WriteTarget:
    """The target of a correction of a counter."""
    names = frozenset({ALL, tally.name})
    return WriteTarget(names, tally.name, Kind.COUNTER_DRIFT, key, tally.table)
