"""Screens mailboxes in Spark's Python workers: the first step of counting, on a cluster."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from pyspark.sql import SparkSession

from reconcilers.words.errors import Overloaded
from streaming.counters.screening import Screened, ScreenMailboxes
from streaming.pipeline.cores import Pool, cores, use_pool
from streaming.pipeline.screen_job import ScreenJob
from streaming.pipeline.spark_errors import job_of
from streaming.pipeline.worker_process import collect_seldom, log_as_driver

ON_WORKERS = 20_000
"""Mailboxes of one job."""
FEW = 500
"""Mailboxes that are not divided among tasks."""
SECONDS = 2.0
"""A task begins nothing after this time: repairs of rows wait for its core."""
ID = 16
"""Bytes of a mailbox's id."""


def on_workers(spark: SparkSession, job: Callable[[], ScreenJob]) -> ScreenMailboxes:
    """A function that screens mailboxes in Spark's workers; ``job`` is asked each time.

    It raises `SparkDied`, and `Overloaded` if a worker fails: the next call does it again.
    """

    def screen(mailboxids: Sequence[UUID]) -> Screened:
        found = Screened()
        with job_of(Overloaded):
            use_pool(spark, Pool.COUNTERS)
            shares = _shares(mailboxids, cores(spark))
            task = screen_task(replace(job(), tasks=len(shares)))
            tasks = spark.sparkContext.parallelize(shares, len(shares)).mapPartitions(task)
            for each in tasks.collect():
                found.update(pickle.loads(each))  # our own workers made it
        return found

    return screen


def screen_task(job: ScreenJob) -> Callable[[Iterable[bytes]], Iterator[bytes]]:
    """For ``mapPartitions``: the ids of mailboxes in, 16 bytes each; a pickled `Screened` out."""
    return partial(_screen_share, job)


def _screen_share(job: ScreenJob, shares: Iterable[bytes]) -> Iterator[bytes]:
    collect_seldom()
    log_as_driver()
    screening, found = job.screening(job), Screened()
    for ids in shares:
        mailboxids = [UUID(bytes=ids[at : at + ID]) for at in range(0, len(ids), ID)]
        found.update(screening.of(mailboxids, time.monotonic() + SECONDS))
    yield pickle.dumps(found)


def _shares(mailboxids: Sequence[UUID], most: int) -> list[bytes]:
    number = max(1, min(most, len(mailboxids) // FEW))
    return [b"".join(each.bytes for each in mailboxids[at::number]) for at in range(number)]
