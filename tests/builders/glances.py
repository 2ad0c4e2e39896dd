"""A glance at wakes: what is left as wakes again, what was touched as slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checkpoints.lineage import RawLineage
from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawShape
from reconcilers.rows.glance import Keys
from reconcilers.words.model import KeyValue, Micros, Slot, Wake
from streaming.steps.glance import Glance
from streaming.steps.ports import RawTables
from tests.fakes.raw_tables import shape_of


@dataclass(frozen=True)
class GlancedAt:
    """`streaming.steps.glance.Glanced`, of wakes and slots."""

    left: list[Wake]
    examined: int
    changes: Mapping[KeyValue, int]
    touched: tuple[Slot, ...]


@dataclass(frozen=True)
class WakesGlance:
    """Glances at wakes, as `SettledKeys` has them by columns."""

    shape: RawShape
    glance: Glance

    def at(self, wakes: Sequence[Wake], watched_since: Micros | None) -> GlancedAt:
        glanced = self.glance.at(Keys.of(self.shape, wakes), watched_since)
        return GlancedAt(
            [wakes[number] for number in glanced.left],
            glanced.examined,
            glanced.changes,
            tuple(Slot(*key) for key in glanced.touched),
        )


def glance_of(family: Family, tables: RawTables, lineage: RawLineage) -> WakesGlance:
    """Of a family at these tables."""
    shape = shape_of(family)
    return WakesGlance(shape, Glance(family, shape, tables, lineage))
