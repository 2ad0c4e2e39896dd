"""What a dry replay looks with: it reads as the stream does, and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from checkpoints.expiries import Expiries
from checkpoints.lineage import Lineage
from checkpoints.tallies import Tallies
from streaming.pipeline.worker import Connections

WRITES = frozenset(
    {"remember", "expire", "remember_deletes", "keep_deletes", "expect", "mark"}
    | {"counted", "counted_whole", "watch_from", "stop_watching", "mark_swept", "mark_listed"}
)
"""The methods of lineage, expiries and tallies that write. A test compares them with the ports."""


@dataclass(frozen=True, slots=True)
class _Unchanged:
    """A store of which all reads are answered, and no write is carried out."""

    store: Any

    def __getattr__(self, name: str) -> Any:
        return _write_nothing if name in WRITES else getattr(self.store, name)


def _write_nothing(*_: object) -> None:
    """Carry out no write."""


def without_writes(ours: Connections) -> Connections:
    """The same connections, over which a look changes none of our tables."""
    return replace(
        ours,
        lineage=cast(Lineage, _Unchanged(ours.lineage)),
        expiries=cast(Expiries, _Unchanged(ours.expiries)),
        tallies=cast(Tallies, _Unchanged(ours.tallies)),
    )
