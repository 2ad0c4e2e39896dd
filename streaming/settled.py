"""What came out of the settle window, as a worker gets it: Arrow columns, made into wakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from reconcilers.model import Kind, Micros, Wake

WAKE_COLUMNS = (
    "mailboxid",
    "messageid",
    "suspected",
    "uid",
    "oldest",
    "newest",
    "deleted_from",
    "deleted_at",
    "from_truth",
    "looked_again",
    "expires_at",
    "projection",
)
"""In the order of `Wake`'s fields, but ``suspected``."""


@dataclass(frozen=True, slots=True)
class Settled:
    """One Arrow batch of `streaming.window.SETTLED_COLUMNS`, without the heartbeat's own row."""

    keys: pa.RecordBatch
    bad: list[dict[str, Any]]
    """Records that could not be decoded, with their reason."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Settled:
        """Keys and bad records apart."""
        good = pc.is_null(batch["reason"])
        keys = batch.filter(pc.and_(good, pc.invert(batch["heartbeat"])))
        return cls(keys, batch.filter(pc.invert(good)).to_pylist())

    def wakes(self) -> Iterator[Wake]:
        """Each key as a wake."""
        columns = (self.keys.column(name).to_pylist() for name in WAKE_COLUMNS)
        for mailboxid, messageid, suspected, *rest in zip(*columns, strict=True):
            kind = Kind(suspected) if suspected else None
            wake = Wake(_uuid(mailboxid), _uuid(messageid), *rest)
            yield replace(wake, suspected=kind) if kind else wake

    def write_times(self) -> Iterator[tuple[Micros, Micros, Micros]]:
        """Of each key that a change woke: oldest and newest write, the least capture delay; µs."""
        changed = self.keys.filter(pc.invert(self.keys["looked_again"]))
        names = ("oldest", "newest", "quickest")
        columns = (changed.column(name).to_pylist() for name in names)
        return (times for times in zip(*columns, strict=True) if times[0] is not None)


@lru_cache(maxsize=10_000)
def _uuid(text: str | None) -> UUID | None:
    """Keys come in the order of their mailboxes, and a row's two keys one after the other."""
    return UUID(text) if text else None
