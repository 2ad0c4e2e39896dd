"""Mailboxes are screened in Spark's workers: each once, in shares; a failing worker raises."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.words.errors import Overloaded, Unreachable
from streaming.counters.screening import Screened
from streaming.pipeline.screen_job import ScreenJob
from streaming.pipeline.screen_task import FEW, SECONDS, on_workers
from streaming.settings import Settings


class EvenNumbers:
    """Suspects mailboxes with an even number; the others agree."""

    def __init__(self, job: ScreenJob) -> None:
        (self.tally,) = job.tallies

    def of(self, mailboxids: Sequence[UUID], until: float) -> Screened:
        """It is to end soon."""
        assert 0 < until - time.monotonic() <= SECONDS
        found = Screened()
        found.suspect((each for each in mailboxids if each.int % 2 == 0), [self.tally.name])
        found.agree[self.tally.name] = len(mailboxids) - len(found.suspected)
        return found


def even(job: ScreenJob) -> Any:
    return EvenNumbers(job)


def unreachable(_job: ScreenJob) -> Any:
    raise Unreachable("no host answered")


def job(screening: Any) -> ScreenJob:
    return ScreenJob(Settings(), MESSAGE, [MAILBOX_COUNTERS], 0, screening)


@pytest.mark.parametrize("number", [1, FEW, 3 * FEW + 7])
def test_each_mailbox_is_screened_once(spark: SparkSession, number: int) -> None:
    mailboxids = [UUID(int=each) for each in range(number)]
    found = on_workers(spark, lambda: job(even))(mailboxids)
    assert found.suspected.keys() == set(mailboxids[::2])
    assert found.agree == {MAILBOX_COUNTERS.name: number // 2} or number == 1


def test_a_worker_without_an_answer_is_tried_again_by_the_next_call(spark: SparkSession) -> None:
    screen = on_workers(spark, lambda: job(unreachable))
    with pytest.raises(Overloaded, match="Unreachable: no host answered"):
        screen([UUID(int=1)])
