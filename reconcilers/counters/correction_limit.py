"""The largest error of a counter that is corrected without a person. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.declared.tally import Sum, Sums

NOT_AGREED: Sums = {}


def above_limit(sums: Iterable[Sum], drift: Sums, limit: Sums, agreed: Sums) -> list[Sum]:
    """The sums whose error a person has to decide on.

    The whole error, ``drift``, is compared with the limit, not the next correction: otherwise a
    large correction could be made in several rounds. ``agreed`` is the error that a person has
    accepted. It may have grown by the limit since; an error of the other sign was not accepted.
    """
    return [each for each in sums if abs(drift[each]) > _most(each, drift, limit, agreed)]


def _most(of: Sum, drift: Sums, limit: Sums, agreed: Sums) -> int:
    accepted, most = agreed.get(of, 0), limit.get(of, 0)
    return most + abs(accepted) if accepted * drift[of] > 0 else most
