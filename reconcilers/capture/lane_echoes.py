"""The canaries of a slice, folded into one piece a lane. Pure.

A worker does this, so the driver's work for a slice grows with the lanes and not with the canaries.
The frontier decides as if it had received each canary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from reconcilers.capture.chain import consecutive
from reconcilers.capture.frontier import UNHEARD, Echo, Echoes, Lane, PauseEnd
from reconcilers.words.model import Micros


def folded(echoes: Iterable[tuple[int, Echo]], longest_pause: Micros) -> list[Echoes]:
    """All echoes of a slice with their offsets, as one `Echoes` a lane; a pause is in µs."""
    by_lane: dict[Lane, list[Echo]] = {}
    for _, echo in sorted(echoes, key=itemgetter(0)):
        by_lane.setdefault(echo.lane, []).append(echo)
    return [_folded(lane, came, longest_pause) for lane, came in by_lane.items()]


def _folded(lane: Lane, came: Sequence[Echo], longest_pause: Micros) -> Echoes:
    canaries = [each.canary for each in came]
    runs = [each.run() for each in canaries]
    newest, ends = UNHEARD, []
    for canary, run in zip(canaries, runs, strict=True):
        if not 0 < canary.idle <= longest_pause:
            ends.append(PauseEnd(canary.number, canary.idle, canary.at, newest))
        newest = max(newest, run.reached)
    astray = (
        (run.proven, echo.astray) for run, echo in zip(runs, came, strict=True) if echo.astray
    )
    return Echoes(
        lane,
        canaries[0].previous,
        tuple(consecutive(runs)),
        tuple(ends),
        max(astray, default=None),
    )
