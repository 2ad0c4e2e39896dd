"""What a run is made of: of which kind it is, and what follows from its seed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from deploy.embedded.spec import NEWEST_RELEASE, CassandraRelease
from deploy.mailserver.rights import RIGHTS_PROJECTIONS
from deploy.mailserver.workload import Workload
from deploy.nemesis.clocks import CLOCK_FAULTS
from deploy.nemesis.schedule import (
    FaultChoice,
    InjectedFault,
    PlannedFault,
    fault_schedule,
    one_after_another,
)

USUAL_MINUTES = 24.0
"""Long enough for every kind of fault."""
REST_S = 20.0
"""After a round of faults, and before the first."""
WORKERS = 6
UNLUCKY = 0.05
"""The share of operations whose statement to the listing is lost, late or sent twice."""
UPGRADES_S = 60.0
"""From the begin of one upgrade to that of the next, or longer where one takes longer."""


class RunKind(StrEnum):
    """What is done to the servers meanwhile."""

    FAULTS = "faults"
    """All of them but upgrades."""
    CLOCKS = "clocks"
    """Clocks are wrong by more than half the delay: repairs must pause each time."""
    EXECUTORS = "executors"
    """All of them but upgrades, and the stream runs on the executors of a Spark cluster."""
    SECURE = "secure"
    """The same, with TLS, logins and rights at all servers; Kafka has one broker."""
    UPGRADE = "upgrade"
    """One node after the other gets the newest release of Cassandra, and its agent with it."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run is made of; `rate` is in operations a second, `release` that at its start.

    The same numbers give the same operations and the same faults.
    """

    seed: int
    minutes: float
    release: CassandraRelease
    rate: float
    kind: RunKind = RunKind.FAULTS

    @property
    def delay_s(self) -> int:
        """The delay D."""
        return 5 if self.kind is RunKind.CLOCKS else 10

    @property
    def shift_s(self) -> int:
        """How far clocks are shifted: repairs go on below D/2."""
        return 3 if self.kind is RunKind.CLOCKS else 2

    @property
    def on_executors(self) -> bool:
        """Whether the stream runs on a Spark cluster."""
        return self.kind is RunKind.EXECUTORS

    @property
    def secure(self) -> bool:
        """Whether TLS, logins and rights are on."""
        return self.kind is RunKind.SECURE

    @property
    def releases(self) -> str:
        """That of Cassandra, or both of an upgrade."""
        upgrade = self.kind is RunKind.UPGRADE
        return f"{self.release} to {NEWEST_RELEASE}" if upgrade else self.release

    def workload(self) -> Workload:
        """Of the users, whose own statements meet faults too."""
        operations = round(self.minutes * 60 * self.rate)
        faults = round(operations * UNLUCKY)
        return Workload(
            operations=operations,
            rate=self.rate,
            workers=WORKERS,
            seed=self.seed,
            faults=faults,
            index_faults=faults // 10,
            counter_faults=faults // 10,
            other_faults=dict.fromkeys(RIGHTS_PROJECTIONS, faults // 20),
        )

    def faults(self, choices: Sequence[FaultChoice]) -> list[PlannedFault]:
        """Those of its kind that fit into its length."""
        if self.kind is RunKind.UPGRADE:
            upgrades = [each for each in choices if each.kind is InjectedFault.UPGRADE]
            return one_after_another(upgrades, REST_S, UPGRADES_S)
        kinds = set(InjectedFault) - {InjectedFault.UPGRADE}
        if self.kind is RunKind.CLOCKS:
            kinds = set(CLOCK_FAULTS)
        possible = [each for each in choices if each.kind in kinds]
        return fault_schedule(self.seed, self.minutes * 60, REST_S, possible)
