"""What runs inside Spark's Python workers: steps 3–4 for keys (`repair_task` has steps 5–7).

The functions made here are sent to the workers, so they hold only values and functions of modules.
Those of a `Job` (`streaming.commands.wiring.workers`) make each process its connections, once.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from checkpoints.clock import now_micros, to_micros
from checkpoints.expiries import Expiries, Expiry
from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from checkpoints.tallies import Tallies
from reconcilers.capture.frontier import Echo, Echoes
from reconcilers.capture.lane_echoes import folded
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.memory import believed_since
from reconcilers.rows.seen import wakes_of
from reconcilers.words.model import KeyValue, Micros, Slot, Suspect, Wake
from streaming.counters.mailbox_changes import MailboxChanges
from streaming.counters.mailboxes import chunks_of, mailboxes_of
from streaming.monitoring.clocks import ClockWatch
from streaming.pipeline.arrow import SettledKeys, WriteTimes
from streaming.pipeline.scheduled_looks import looks_after_expiry, looks_at_groups, spread
from streaming.pipeline.suspect_cap import Cap, LeftOut, left_out, split
from streaming.pipeline.suspects import came_back, each_once
from streaming.pipeline.worker_process import collect_seldom, log_as_driver
from streaming.settings import Settings
from streaming.steps.examine import Examiner
from streaming.steps.glance import Glance
from streaming.steps.look import Look, LookResult
from streaming.steps.looks import Looks
from streaming.steps.pauses import PauseWatch
from streaming.steps.ports import MessageTables
from streaming.topics import publish_dead_letters, publish_wakes

RESULT_SCHEMA = "result binary"
KEYS_AT_ONCE = 10_000


def unlimited(_tasks: int) -> None:
    """Nothing limits what is read."""


@dataclass(frozen=True, slots=True)
class Connections:
    """One process's connections to what it reads and writes; some families have no ``glance``.

    ``clocks`` compares the nodes' clocks with this process's own; ``pauses`` reads what is paused;
    ``share`` divides the rows that may be read a second among so many tasks.
    """

    tables: MessageTables
    lineage: Lineage
    journal: Journal
    expiries: Expiries
    tallies: Tallies
    clocks: ClockWatch
    pauses: PauseWatch
    glance: Glance | None = None
    share: Callable[[int], None] = unlimited


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker needs: settings, the family bound to the cluster's schema, functions.

    ``connect`` returns a process's connections; ``examiner`` makes the examiner of a projection
    over them. Both are functions of a module, because a job is sent to the workers. ``tasks`` run
    at a time.
    """

    settings: Settings
    family: Family
    suspects_topic: str
    connect: Callable[[Settings, Family], Connections]
    examiner: Callable[[Job, Projection], Examiner]
    tasks: int = 1

    def connections(self) -> Connections:
        """This process's connections."""
        ours = self.connect(self.settings, self.family)
        ours.share(self.tasks)
        return ours

    def of_tasks(self, tasks: int) -> Job:
        """The job as it is sent to workers that run so many tasks of it at a time."""
        return replace(self, tasks=tasks)

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Publish keys to be looked at again."""
        publish_wakes(self.settings.kafka, self.suspects_topic, self.family, wakes)

    def keep_dead_letters(self, letters: Iterable[Mapping[str, Any]]) -> None:
        """Publish records that cannot be examined, as rows of `envelope.BAD_COLUMNS`."""
        publish_dead_letters(self.settings.kafka, letters)


@dataclass(slots=True)
class BatchLook:
    """What one worker found in its share of a batch.

    ``left_out`` are the suspects of shares that did not travel, ``changes`` counts the changes of
    each mailbox with counters; ``echoes`` are the canaries of each lane.
    """

    suspects: list[Suspect] = field(default_factory=list)
    examined: int = 0
    unresolved: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    times: WriteTimes = field(default_factory=WriteTimes)
    left_out: list[LeftOut] = field(default_factory=list)
    changes: MailboxChanges = field(default_factory=MailboxChanges)
    echoes: list[Echoes] = field(default_factory=list)

    def add(self, looked: LookResult) -> None:
        """Add the result of one look."""
        self.suspects.extend(looked.suspects)
        self.examined += looked.examined
        self.unresolved += looked.unresolved

    def merge(self, other: BatchLook) -> None:
        """Add another worker's share."""
        self.suspects.extend(other.suspects)
        self.examined += other.examined
        self.unresolved += other.unresolved
        self.bad.update(other.bad)
        self.changes.update(other.changes)
        self.left_out.extend(other.left_out)
        self.times = self.times.and_of(other.times)
        self.echoes.extend(other.echoes)

    def take_left_out(self, most: int | None = None) -> bool:
        """Let what was left out travel after all, as far as it can. Returns whether any does.

        Of the shares' parts as many are taken as make ``most`` suspects with those that travel.
        """
        taken, left, number = list[Suspect](), list[LeftOut](), len(self.suspects)
        for each in self.left_out:
            if each.pickled and (most is None or number + each.number <= most):
                taken += each.suspects()
                number += each.number
            else:
                left.append(each)
        self.left_out = left
        self.suspects = each_once([*self.suspects, *taken])
        self.examined += came_back(taken)
        return bool(taken)


def read_looks(pickled: Iterable[bytes]) -> BatchLook:
    """The shares of all workers as one."""
    whole = BatchLook()
    for each in pickled:
        share = pickle.loads(each)  # our own workers made it
        assert isinstance(share, BatchLook)
        whole.merge(share)
    whole.suspects = each_once(whole.suspects)
    return whole


# --- steps 3 and 4


def look_task(
    job: Job, apart: frozenset[Slot] = frozenset(), cap: Cap | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For ``mapInArrow``: settled rows in, one pickled `BatchLook` out.

    ``apart`` are the places that are known to be unreadable. ``cap`` says how many suspects travel.
    What is stored has the time of this call, by the clock of the driver: a worker's may be wrong.
    """
    return partial(_look_share, job, apart, cap, now_micros())


def _look_share(
    job: Job,
    apart: frozenset[Slot],
    cap: Cap | None,
    now: Micros,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    collect_seldom()
    log_as_driver()
    found = BatchLook()
    wakes: list[Wake] = []
    echoes: list[tuple[int, Echo]] = []
    for batch in batches:
        settled = SettledKeys.of(batch)
        _keep_undecodable(job, settled.bad, found)
        echoes += settled.echoes
        _account(settled, found, to_micros(job.settings.stream.delay))
        wakes.extend(_glanced(job, apart, settled, found, now))
        if len(wakes) >= KEYS_AT_ONCE:
            look_at(job, apart, wakes, found, now)
            wakes = []
    if wakes:
        look_at(job, apart, wakes, found, now)
    if cap is not None:
        _publish_left_out(job, found, cap)
    found.echoes = folded(echoes, to_micros(job.settings.canary.longest_pause))
    yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(found)]})


def _publish_left_out(job: Job, found: BatchLook, cap: Cap) -> None:
    """Keep as many suspects as travel; publish the others again, and count them.

    They have no finding, so no counter must believe their rows: each is a change in flight until it
    is back.
    """
    found.suspects, left = split(each_once(found.suspects), cap.travel)
    if left:
        job.publish(wake for each in left for wake in wakes_of(job.family, each, each.kind))
        found.left_out += left_out(job.family, job.connections().journal.holds, left, cap.ready)
        found.examined -= came_back(left)
        found.changes.update(mailboxes_of(job.family, Counter(each.slot.group for each in left)))


def _glanced(
    job: Job, apart: frozenset[Slot], settled: SettledKeys, found: BatchLook, now: Micros
) -> Iterable[Wake]:
    """The keys that still need a look; those that are plainly right are counted in ``found``."""
    ours = job.connections()
    if ours.glance is None or not settled.keys.num_rows:
        return settled.wakes(job.family)
    delay = to_micros(job.settings.stream.delay)
    keys = settled.for_glance(job.family).without(apart)
    glanced = ours.glance.at(keys, believed_since(ours.lineage.watching(), delay))
    ours.tallies.mark(chunks_of(job.family, glanced.touched, job.settings.tally.chunk), now)
    found.examined += glanced.examined
    found.changes.update(mailboxes_of(job.family, glanced.changes))
    return settled.wakes(job.family, glanced.left)


def look_at(
    job: Job, apart: frozenset[Slot], wakes: list[Wake], found: BatchLook, now: Micros
) -> None:
    """Look at these keys and all that they lead to, and add the results to ``found``.

    ``now`` is µs, taken before the first read.
    """
    ours = job.connections()
    delay = to_micros(job.settings.stream.delay)
    watching = ours.lineage.watching()
    believed = None if watching is None else watching.believed(delay)
    look = Look(
        *(job.family, ours.tables, ours.lineage),
        None if believed is None else believed.since,
        apart,
        None if believed is None else believed.listed_at,
    )
    width = job.settings.tally.chunk
    every = to_micros(job.settings.repair.recheck_interval)
    for looked in Looks(look).at(wakes, now):
        ours.tallies.mark(chunks_of(job.family, (slot.key for slot in looked.touched), width), now)
        ours.expiries.expect(Expiry(slot, None, spread(slot, now, every)) for slot in looked.later)
        if looked.again:
            job.publish(looked.again)
        found.add(looked)
        found.changes.update(mailboxes_of(job.family, looked.changes))
    ours.expiries.expect(looks_after_expiry(wakes, now, delay))
    ours.expiries.expect(looks_at_groups(job.family, wakes, now, every))


def mark_counted(job: Job, keys: Iterable[tuple[KeyValue, ...]]) -> None:
    """Mark what counters sum up at these keys: it is to be counted again."""
    touched = chunks_of(job.family, keys, job.settings.tally.chunk)
    job.connections().tallies.mark(touched, now_micros())


def _account(settled: SettledKeys, found: BatchLook, delay: Micros) -> None:
    """Note the oldest write, and writers whose clock is ahead by more than half the delay."""
    times = settled.write_times(fast=delay // 2)
    if times is not None:
        found.times = found.times.and_of(times)


def _keep_undecodable(job: Job, rows: list[dict[str, Any]], found: BatchLook) -> None:
    if rows:
        job.keep_dead_letters(rows)
        found.bad.update(row["reason"] for row in rows)
