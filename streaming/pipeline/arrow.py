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
    "changes",
)
"""In the order of `Wake`'s fields, but ``suspected``."""


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """Oldest and newest write, the newest's capture delay (µs), keys written by fast clocks."""

    oldest: Micros
    newest: Micros
    captured_in: Micros
    fast_writers: int


@dataclass(frozen=True, slots=True)
class SettledKeys:
    """One Arrow batch of `window.SETTLED_COLUMNS`, without the heartbeat's own row."""

    keys: pa.RecordBatch
    bad: list[dict[str, Any]]
    """Records that could not be decoded, with their reason."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> SettledKeys:
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

    def write_times(self, fast: Micros) -> WriteTimes | None:
        """Of the keys that a change woke; None without any. ``fast``: so far ahead (µs) is fast."""
        told = pc.and_(pc.invert(self.keys["looked_again"]), pc.is_valid(self.keys["oldest"]))
        changed = self.keys.filter(told)
        if not changed.num_rows:
            return None
        newest = pc.max(changed["newest"])
        last = changed.filter(pc.equal(changed["newest"], newest))
        return WriteTimes(
            oldest=pc.min(changed["oldest"]).as_py(),
            newest=newest.as_py(),
            captured_in=pc.max(last["quickest"]).as_py(),
            fast_writers=pc.sum(pc.less(changed["quickest"], -fast)).as_py(),
        )


@lru_cache(maxsize=10_000)
def _uuid(text: str | None) -> UUID | None:
    """Keys come in the order of their mailboxes, and a row's two keys one after the other."""
    return UUID(text) if text else None
