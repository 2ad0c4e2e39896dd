"""The names of violations, and how one cell that is not what the truth says gets its name. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from deploy.nemesis.cells import ByUsers, Put, explained
from deploy.nemesis.tables import Held, JsonValue, RowId


class ViolationName(StrEnum):
    """What is wrong at the end of a run."""

    LOST = "lost"
    """A cell has neither the value of an acknowledged user write nor that of a later one."""
    OVERRIDDEN = "overridden"
    """A cell has a value, newer than the last user write, that no user wrote."""
    REMOVED = "removed without a delete"
    """A row that users wrote is gone, no user deleted it, and the truth has it."""
    TRUTH_WRITE = "truth write"
    """A cell of a truth table is not what the users' writes made it."""
    DOUBLED = "doubled delta"
    """A counter is off by a delta that was added once too often."""
    NOT_CONVERGED = "not converged"
    """The users' writes explain it, and it is not what the truth says."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation: where it is, and the evidence for it. `cell` is empty for a whole row."""

    name: ViolationName
    table: str
    key: RowId
    cell: str
    evidence: Mapping[str, JsonValue]


@dataclass(slots=True)
class Judgement:
    """All violations of a run.

    `weakened` counts the cells and counters that are in order only if a write with an unknown
    outcome was (or was not) applied. `left` has the differences that the product reports and leaves
    to a person.
    """

    violations: list[Violation] = field(default_factory=list)
    weakened: int = 0
    left: list[str] = field(default_factory=list)

    def count(self, name: ViolationName) -> int:
        """The number of violations of this name."""
        return sum(each.name is name for each in self.violations)


def cell_name(puts: Sequence[Put], held: Held) -> tuple[ViolationName, ByUsers]:
    """The name of a projection's cell that is not what the truth says.

    Without a readable write time a value that users once wrote counts as an old one.
    """
    by_users = explained(puts, held)
    if by_users is not ByUsers.NO:
        return ViolationName.NOT_CONVERGED, by_users
    if held.value is None:
        return ViolationName.LOST, by_users
    if held.time is None:
        known = any(put.value == held.value for put in puts)
        return (ViolationName.LOST if known else ViolationName.OVERRIDDEN), by_users
    newest = max((put.earliest for put in puts if put.certain), default=-1)
    return (ViolationName.OVERRIDDEN if held.time >= newest else ViolationName.LOST), by_users


def cell_evidence(puts: Sequence[Put], held: Held) -> dict[str, JsonValue]:
    """What the cell holds, and the newest writes of its users."""
    newest = sorted(puts, key=lambda put: put.latest)[-3:]
    return {
        "value": held.value,
        "time": held.time,
        "users": [
            {
                "write": put.write,
                "value": put.value,
                "times": [put.earliest, put.latest],
                "acknowledged": put.certain,
            }
            for put in newest
        ],
    }
