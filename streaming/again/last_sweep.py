"""The last sweep of a family in words, and since when every row has been compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from checkpoints.sweeps import AHEAD, SweepRecord, Sweeps, of_systems
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros

NOT_SWEPT = "never swept: what was wrong before the first start is not known (`reconcile sweep`)"


def last_sweep(sweeps: Sweeps, systems: Collection[str], waits: str | None = None) -> str:
    """A line on a family's newest sweep. ``systems`` are the projections that must be compared.

    ``waits`` is why one that has not ended waits, None if it does not.
    """
    known = of_systems(sweeps.all(), systems)
    if not known:
        return NOT_SWEPT
    newest, since = known[0], compared_since(known, systems)
    if newest.ended_at is not None:
        told = f"last swept {iso(newest.ended_at)}: {newest.outcome}"
        before = "not every row was ever compared"
        if since is not None:
            before = f"every row was last compared after {iso(since)}"
        return told if since == newest.began_at else f"{told}; {before}"
    read = sweeps.ranges(newest).items()
    done = sum(each.ranges for (table, _), each in read if not table.endswith(AHEAD))
    others = "were never compared" if since is None else f"were last compared after {iso(since)}"
    until = "" if waits is None else f", waits {waits},"
    return (
        f"a sweep of {iso(newest.began_at)} by {newest.who} has read {done} ranges{until} and"
        f" has not ended; the others {others}; a stopped one continues with"
        " `reconcile sweep --resume`"
    )


def compared_since(sweeps: Sequence[SweepRecord], systems: Collection[str]) -> Micros | None:
    """When (µs) the newest ended sweep of all these systems began; None without one.

    Each row was compared since then, except in ranges that the sweep's outcome names as unread.
    """
    ended = (each for each in sweeps if each.ended_at is not None)
    return max((each.began_at for each in ended if set(systems) <= {*each.systems}), default=None)
