"""How large an error of a counter may be that is corrected without a person. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.declared.tally import Sum, Sums

NOT_AGREED: Sums = {}


def above_limit(sums: Iterable[Sum], drift: Sums, limit: Sums, agreed: Sums) -> list[Sum]:
    """Those of the sums whose error a person has to decide on.

    It is the whole error, ``drift``, that is held against the limit, not what is added now: else a
    large correction could come in several rounds, each below the limit. ``agreed`` is the error
    that a person has accepted. By as much as the limit it may have grown since; one to the other
    side was not accepted.
    """
    return [each for each in sums if abs(drift[each]) > _most(each, drift, limit, agreed)]


def _most(of: Sum, drift: Sums, limit: Sums, agreed: Sums) -> int:
    accepted, most = agreed.get(of, 0), limit.get(of, 0)
    return most + abs(accepted) if accepted * drift[of] > 0 else most
