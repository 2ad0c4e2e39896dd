"""Our own deletes are no evidence: each is in lineage before it is sent, and so recognised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from checkpoints.lineage import Lineage
from reconcilers.declared.writes import DeleteRow, Write
from reconcilers.rows.deletes import OwnDelete
from reconcilers.words.model import Micros
from streaming.steps.ports import WriteTables


@dataclass(frozen=True, slots=True)
class RememberedWrites:
    """`WriteTables` that first records in lineage what it deletes from the listing."""

    tables: WriteTables
    lineage: Lineage
    clock: Callable[[], Micros]

    def apply(self, writes: Sequence[Write]) -> None:
        """Send the writes of one repair. Raises what lineage and tables raise."""
        own = [
            OwnDelete(each.slot, each.at, self.clock())
            for each in writes
            if isinstance(each, DeleteRow) and not each.projection.is_index
        ]
        if own:
            self.lineage.remember_deletes(own)
        self.tables.apply(writes)
