"""Mail under fire: writers at some speed, and counter updates that are lost or counted twice."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.faults import Fault, FaultKind, Faults
from deploy.mailserver.history import CounterWrite, MailWrite
from deploy.mailserver.mail import Message, Numbers
from deploy.mailserver.mailbag import random_change, random_content, random_flags
from deploy.mailserver.mailserver import MailServer, MessageGoneError

Owner = UUID | str
"""A mailbox, or a quota root."""


@dataclass(frozen=True)
class Burn:
    """What a fault has added to the counters of an owner, at a time (µs)."""

    at: int
    owner: Owner
    added: dict[str, int]


@dataclass
class Fire(Faults):
    """So large a share of all counter updates fail: of four, three are lost and one is doubled.

    ``meant`` is what all updates would have added.
    """

    share: float = 0.0
    seed: int = 1
    burns: list[Burn] = field(default_factory=list)
    meant: Counter[tuple[Owner, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()
        self._chance = random.Random(self.seed)

    def meet(self, write: MailWrite) -> Fault | None:
        """A fault for a counter update now and then; none for anything else."""
        if not isinstance(write, CounterWrite):
            return None
        with self._lock:
            for counter, number in write.added.items():
                self.meant[write.owner, counter] += number
            if self._chance.random() >= self.share:
                return None
        kind = self._chance.choice([*[FaultKind.NOT_SENT] * 3, FaultKind.DOUBLED])
        sign = 1 if kind is FaultKind.DOUBLED else -1
        added = {counter: sign * number for counter, number in write.added.items()}
        self.burns.append(Burn(time.time_ns() // 1000, write.owner, added))
        return Fault(f"burn-{len(self.burns)}", kind, 0.0)


@dataclass
class Writers:
    """Users of some mailboxes, each on a thread of its own, who append, flag and expunge."""

    session: Session
    keyspace: str
    mailboxes: Sequence[UUID]
    faults: Faults
    numbers: Numbers = field(default_factory=Numbers)
    threads: int = 4
    done: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def at_work(self, pause_s: float) -> Iterator[None]:
        """All of them, pausing after each operation, until the block ends; raises what failed."""
        stop, failed = threading.Event(), list[BaseException]()

        def work(seed: int) -> None:
            try:
                self._work(seed, pause_s, stop)
            except BaseException as error:
                failed.append(error)
                raise

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(self.threads)]
        for each in workers:
            each.start()
        try:
            yield
        finally:
            stop.set()
            for each in workers:
                each.join()
        assert not failed, failed

    def _work(self, seed: int, pause_s: float, stop: threading.Event) -> None:
        chance = random.Random(seed)
        server = MailServer(self.session, self.keyspace, numbers=self.numbers, faults=self.faults)
        messages: list[Message] = []
        while not stop.wait(pause_s):
            what = chance.choices(["append", "flags", "expunge"], [5, 3, 2])[0]
            self.done[what] += 1
            if what == "append" or not messages:
                mailboxid = chance.choice(self.mailboxes)
                content, flags = random_content(chance), random_flags(chance)
                messages.append(server.append(mailboxid, content, flags))
                continue
            number = chance.randrange(len(messages))
            message = messages[number]
            try:
                if what == "flags":
                    changed = random_change(message.flags, chance)
                    messages[number] = server.set_flags(message, changed)
                else:
                    server.expunge(messages.pop(number))
            except MessageGoneError:
                messages.remove(message)
