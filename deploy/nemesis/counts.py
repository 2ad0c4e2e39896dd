"""What the users' deltas allow a counter to be. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.nemesis.cells import ByUsers
from deploy.nemesis.history import UserOutcome, UserWrite
from deploy.nemesis.verdict import ViolationName


@dataclass(frozen=True, slots=True)
class UserSum:
    """The sum of all deltas that users sent to one counter.

    Each acknowledged one was applied once, or as often as it was sent to a host; one with an
    unknown outcome perhaps not at all. `once` leaves those doubts out.
    """

    lowest: int
    highest: int
    once: int
    deltas: frozenset[int]


def user_sum(writes: Sequence[UserWrite], counter: str) -> UserSum:
    """Of the writes of one row of a counter table."""
    lowest = highest = once = 0
    deltas = set()
    for write in writes:
        delta = write.statement.cells.get(counter, 0)
        if not delta or write.answer.outcome is UserOutcome.FAILED:
            continue
        acknowledged = write.answer.outcome is UserOutcome.OK
        possible = (delta * int(acknowledged), delta * write.answer.attempts)
        lowest += min(possible)
        highest += max(possible)
        once += delta if acknowledged else 0
        deltas.add(delta)
    return UserSum(lowest, highest, once, frozenset(deltas))


def counter_name(users: UserSum, value: int, wanted: int) -> tuple[ViolationName, ByUsers]:
    """The name of a counter that is not what the truth adds up to.

    Between the users' sum and the truth a correction is only missing. Outside of it something was
    added that should not have been: by whole deltas, so one of them twice, or another number.
    """
    if min(users.once, wanted) <= value <= max(users.once, wanted):
        return ViolationName.NOT_CONVERGED, ByUsers.YES
    if min(users.lowest, wanted) <= value <= max(users.highest, wanted):
        return ViolationName.NOT_CONVERGED, ByUsers.MAYBE
    known = (users.deltas | {wanted - users.once}) - {0}
    doubled = any((value - wanted) % delta == 0 for delta in known)
    return (ViolationName.DOUBLED if doubled else ViolationName.OVERRIDDEN), ByUsers.NO
