"""Many changes that are in Kafka already, and a stream that works them off, watched closely."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from deploy.mailserver.filler import touch
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from streaming.settings import Settings, load
from streaming.topics import Watcher
from tests.bench.report import CHANGES_OF_THE_PAGE
from tests.bench.traced import TRACE, Batch, read_trace
from tests.endpoints import Endpoints
from tests.processes import DRIVER, EXECUTORS, JVM, WORKERS, CpuWatch, Spent, servers_of
from tests.stack.streams import Stream, module, until, write_settings

CHANGES = int(os.environ.get("BENCH_CHANGES", CHANGES_OF_THE_PAGE[0]))
"""Fewer for a quick try."""
OURS = (JVM, EXECUTORS, WORKERS, DRIVER)
"""The stream's own processes."""
MAILBOXES = 200
TABLES = ("imapuidtable", "messageidtable")
QUIET = 10.0
"""Seconds without a new record after which the agent has caught up."""
FEW = 50
"""At most so many events of a batch are the canaries' alone."""
LONG_LIVED = {"JDK_JAVA_OPTIONS": "-XX:-UseDynamicNumberOfCompilerThreads"}
"""For a stream's environment: Spark's JVM compiles as in production, not as for a short test.

Threads that compile do not end, so that what they have spent is known (`tests.processes`).
"""
PATIENCE = 900.0 * max(1.0, CHANGES / CHANGES_OF_THE_PAGE[0])


@dataclass(frozen=True)
class Measured:
    """How a backlog was worked off: the busy batches, and seconds from the first to the last.

    ``rss`` is the largest of each Python worker's, MiB; ``spent`` the CPU seconds of each process,
    ``idle`` those of a second afterwards, in which nothing was left to do. ``changes`` were there.
    """

    batches: list[Batch]
    seconds: float
    rss: float
    spent: Spent
    idle: Spent = field(default_factory=dict)
    changes: int = CHANGES
    watch: CpuWatch = field(default_factory=lambda: CpuWatch({}, 0))

    @property
    def for_changes(self) -> float:
        """CPU seconds of the stream, without its compiler and what it spends idle meanwhile."""
        idle = sum(self.idle.get(each, 0.0) for each in OURS)
        return sum(self.spent.get(each, 0.0) for each in OURS) - idle * self.seconds

    @property
    def own(self) -> float:
        """Core-µs a change of the stream's own processes, without Java's compiler."""
        return sum(self.spent.get(each, 0.0) for each in OURS) / self.changes * 1e6

    @property
    def events(self) -> int:
        return sum(batch.events for batch in self.batches)

    @property
    def examined(self) -> int:
        return sum(batch.examined for batch in self.batches)

    @property
    def sustained(self) -> float:
        """Changes a second from the second busy batch to the last."""
        _, *rest = self.batches
        return self.changes_in(rest) / _seconds(rest) if rest else 0.0

    def parts(self, number: int) -> list[list[Batch]]:
        """The batches in so many parts of about the same work."""
        parts: list[list[Batch]] = [[] for _ in range(number)]
        for place, each in enumerate(self.batches):
            done = self.changes_in(self.batches[:place]) / self.changes
            parts[int(done * number)].append(each)
        return parts

    def costs_of(self, part: Sequence[Batch]) -> Spent:
        """Core-µs a change of each process in these batches, which follow each other."""
        spent = self.watch.between(part[0].began_at, part[-1].ended_at)
        return {name: each / self.changes_in(part) * 1e6 for name, each in spent.items()}

    def changes_in(self, batches: Sequence[Batch]) -> float:
        """How many changes' work some of the batches are.

        A batch reads new events and looks at rows that were read before: each is half of the work.
        """
        events = sum(batch.events for batch in batches) / self.events
        looks = sum(batch.examined for batch in batches) / self.examined
        return self.changes * (events + looks) / 2

    def part(self, name: str) -> float:
        return sum(batch.parts.get(name, 0.0) for batch in self.batches)


EVERYTHING: dict[str, dict[str, Any]] = {
    "repair": {"projections": [each.name for each in MESSAGE_PROJECTIONS]},
    "tally": {
        "projections": ["mailbox_counters", "current_quota"],
        "window": 5,
        "max_update_lag": 2,
        "max_quota_lag": 2,
    },
}
"""The settings with which all systems of messages are kept."""
ALL_FAMILIES: dict[str, dict[str, Any]] = {
    **EVERYTHING,
    "rights": {"truth": "eventstore"},
    "attachments": {"tables": ["attachmentv2", "attachmentmessageid"]},
    "mailboxes": {"watch": True},
}
"""The settings with which all systems are kept."""


def sized(title: str) -> str:
    """The title of a section whose numbers depend on how many changes there are."""
    usual = CHANGES_OF_THE_PAGE[0] == CHANGES
    return title if usual else f"{title}, {CHANGES:,} changes"


def bench_settings(
    folder: Path,
    stack: Endpoints,
    keyspace: str,
    own: str,
    sections: Mapping[str, Mapping[str, Any]],
) -> Path:
    """A settings file in which no limit of ours stands in the way."""
    limits = {
        "suspects_per_minute": 1_000_000,
        "suspect_share": 1.0,
        "writes_per_minute": 1_000_000,
    }
    return write_settings(
        folder / "reconcile.toml",
        stack,
        keyspace,
        own,
        {
            **sections,
            "cassandra": {"rows_per_second": 1_000_000},
            "repair": {**limits, **sections.get("repair", {})},
        },
    )


def topics_of(settings: Settings) -> list[str]:
    """The agent's."""
    return [settings.kafka.topic_prefix]


def records(config: Path) -> int:
    """How many records the agent's topic has had so far."""
    settings = load(config)
    watcher = Watcher(settings.kafka)
    try:
        ends = watcher.end_offsets(topics_of(settings))
    finally:
        watcher.close()
    return sum(end for partitions in ends.values() for end in partitions.values())


def wait_until_captured(config: Path, before: int, changes: int) -> float:
    """Until both mail tables had so many more records and the agent sends no more; seconds.

    The agent sends some events twice: so only silence tells that all have come.
    """
    began = time.monotonic()
    last, since = records(config), time.monotonic()
    while True:
        time.sleep(1)
        now = records(config)
        if now != last:
            last, since = now, time.monotonic()
        enough = now - before >= len(TABLES) * changes
        if enough and time.monotonic() - since > QUIET:
            return since - began
        assert time.monotonic() - began < PATIENCE, f"captured only {now} after {before}"


def change_all(session: Session, config: Path, keyspace: str, flag: str) -> float:
    """Turn a flag over on every row, and wait until all is in Kafka; seconds from the first write.

    ``config`` names the topic.
    """
    before, began = records(config), time.monotonic()
    assert touch(session, keyspace, CHANGES, flag) == CHANGES
    touched_in = time.monotonic() - began
    return touched_in + wait_until_captured(config, before, CHANGES)


def work_off(
    config: Path, trace: Path, stack: Endpoints, executors: Sequence[int] = (), rounds: int = 1
) -> Measured:
    """Run a stream until everything in Kafka has been examined, and no key waits any more.

    ``executors`` are the sessions in which a cluster runs executors; each row was changed in each
    of the ``rounds``.
    """
    stream = Stream(
        config, environment={TRACE: str(trace), **LONG_LIVED}, program=module("tests.bench.traced")
    )
    times = load(config).stream
    waits = times.delay + 3 * times.window
    servers = servers_of(stack)
    with stream, CpuWatch(servers, stream.session, elsewhere=executors) as watch:

        def idle() -> bool:
            assert stream.died() is None, stream.log.read_text()[-3000:]
            done = read_trace(trace)
            worked = [batch.ended_at for batch in done if is_busy(batch)]
            return bool(worked) and done[-1].ended_at - worked[-1] > waits

        until("the backlog is worked off", idle, rounds * PATIENCE)
        assert stream.stop() == 0
    busy = [batch for batch in read_trace(trace) if is_busy(batch)]
    ended_at, (over_at, _) = busy[-1].ended_at, watch.samples[-1]
    spent = watch.between(busy[0].began_at, ended_at)
    afterwards = watch.between(ended_at, over_at)
    at_rest = {name: each / (over_at - ended_at) for name, each in afterwards.items()}
    changes = rounds * CHANGES
    return Measured(busy, _seconds(busy), watch.rss, spent, at_rest, changes, watch)


def is_busy(batch: Batch) -> bool:
    """Whether there was more than the canaries of a few seconds."""
    return batch.events > FEW or batch.examined > 0


def _seconds(batches: Sequence[Batch]) -> float:
    """From the beginning of the first to the end of the last."""
    return batches[-1].ended_at - batches[0].began_at
