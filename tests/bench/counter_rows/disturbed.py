"""Runs in which something goes wrong: statements fail as planned, or the node goes away.

Every change is one of `workload.marked`, so that the table itself tells what was lost or doubled.
It goes to a table of the truth first, until that is answered, as a mail server does: what is not
in the truth nobody has to count.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from deploy.mailserver.counters import MAILBOX_COUNTERS
from deploy.mailserver.faults import FaultKind, FaultPlan, Faults
from deploy.mailserver.history import CounterWrite
from tests.bench.counter_rows import truth
from tests.bench.counter_rows.book import Verdict, verdict
from tests.bench.counter_rows.race import counted_by, run_together
from tests.bench.counter_rows.stream import EVENTS
from tests.bench.counter_rows.tables import Counting
from tests.bench.counter_rows.wire import persist, until_answered
from tests.bench.counter_rows.workload import marked, new_mailboxes

EVENT_FAULTS = (FaultKind.NOT_SENT, FaultKind.DOUBLED)
"""What can become of a change's event; all other kinds are of statements."""


def planted_in(kind: FaultKind, seed: int, count: int, changes: int) -> Faults:
    """So many faults of one kind among the first so many changes."""
    projection = EVENTS if kind in EVENT_FAULTS else MAILBOX_COUNTERS.projection
    return Faults([FaultPlan(seed, count, changes, kinds=(kind,), projection=projection)])


@dataclass
class Disturbed:
    """One way of counting with mailboxes of its own, whose writers go through marked changes.

    ``done`` are the numbers of the changes that are over, counted or not.
    """

    counting: Counting
    mailboxes: int
    writers: int
    seed: int = 1
    done: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owners = new_mailboxes(self.mailboxes)
        self.writes = marked(self.seed, self.owners)

    def create(self) -> None:
        """Make the tables unless they are there."""
        self.counting.create()
        truth.create(self.counting.place)

    def tasks(self) -> list[Callable[[], None]]:
        """A task for each writer. They take turns, so that all are in one mailbox at a time."""
        numbered = list(enumerate(self.writes))
        shares = [numbered[first :: self.writers] for first in range(self.writers)]
        return [partial(self._work, share) for share in shares]

    def verdict(self) -> Verdict:
        """What the table says of each change."""
        return verdict(self.writes, self.counting.stored(self.owners))

    def missing_in_truth(self) -> int:
        """How many changes the truth has lost, though it had acknowledged them."""
        place = self.counting.place
        kept = sum(len(place.ask(truth.READ, [owner])) for owner in self.owners)
        return len(self.writes) - kept

    def _work(self, share: Sequence[tuple[int, CounterWrite]]) -> None:
        counted_by(self.counting.writer, self._begun(share))

    def _begun(self, share: Sequence[tuple[int, CounterWrite]]) -> Iterator[CounterWrite]:
        for number, write in share:
            persist(partial(truth.enter, self.counting.place, number, write), until_answered())
            yield write
            self.done.append(number)


def run_all(runs: Sequence[Disturbed], meanwhile: Callable[[], None] = lambda: None) -> None:
    """All of them side by side, to their ends. Raises what failed."""
    for each in runs:
        each.create()
    with ExitStack() as entered:
        for each in runs:
            entered.enter_context(each.counting.running())
        run_together([task for each in runs for task in each.tasks()], meanwhile)


def share_done(runs: Sequence[Disturbed]) -> float:
    """How far they have come together, from 0 to 1."""
    return sum(len(each.done) for each in runs) / sum(len(each.writes) for each in runs)
