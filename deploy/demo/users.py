"""What happens to the mail while the reconciler runs: users at work, and oddities planted."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from cassandra.cluster import Session

from deploy.demo.oddities import plant_repaired, plant_reported
from deploy.demo.other_oddities import plant_others
from deploy.demo.planter import Planter
from deploy.mailserver.ledger import Ledger
from deploy.mailserver.workload import Workload, run


@dataclass(slots=True)
class Users:
    """The workload and the planting, each on a thread of its own.

    `pause_s` must be longer than the reconciler takes to see a new row (D + W and a batch).
    """

    session: Session
    keyspace: str
    workload: Workload
    ledger: Ledger
    pause_s: float
    _stop: threading.Event = field(default_factory=threading.Event)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _work: list[Future[None]] = field(default_factory=list)

    def __enter__(self) -> "Users":
        self._work = [self._pool.submit(self._operate), self._pool.submit(self._plant)]
        return self

    def __exit__(self, *_: object) -> None:
        """Begin no further operation; what is on its way ends by itself."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def working(self) -> bool:
        """Whether anything is still to come, late statements included; raises what went wrong."""
        for work in self._work:
            if work.done():
                work.result()
        return not all(work.done() for work in self._work)

    def _operate(self) -> None:
        run(self.session, self.keyspace, self.workload, self.ledger, self._stop)

    def _plant(self) -> None:
        """What is reported lives apart: nobody knows what its mailbox's counters must be."""
        for plant in (plant_reported, plant_repaired, plant_others):
            seed = self.workload.seed
            plant(Planter(self.session, self.keyspace, self.ledger, seed, self.pause_s))
