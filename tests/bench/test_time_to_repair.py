"""From the oldest write to the repair, of rows that broke while the stream ran."""

import random
import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cassandra.util import unix_time_from_uuid1

from deploy.mailserver.mail import Clock, Flags, Message
from deploy.mailserver.mailbag import random_content, random_flags
from deploy.mailserver.mailserver import new_timeuuid
from deploy.mailserver.truth import Truth
from reconcilers.words.key import text_of
from tests.bench.backlog import LONG_LIVED, bench_settings
from tests.bench.report import publish, table
from tests.bench.traced import TRACE, read_trace
from tests.conftest import make_mail_tables
from tests.endpoints import Running
from tests.stack.scenes import begin_at_the_end
from tests.stack.streams import Stream, module, until
from tests.stack.users import slot_of

pytestmark = pytest.mark.bench

DELAY, WINDOW, TRIGGER = 5.0, 1.0, 0.5
WARM, BROKEN, EVERY = 40, 160, 0.25
"""Rows, of which the first are not measured, and seconds between two of them."""


def test_from_the_oldest_write_to_the_repair(
    running: Running, cassandra: Session, tmp_path: Path
) -> None:
    with watched(running, cassandra, tmp_path) as (stream, keyspace, own):
        until("the stream ended a batch", stream.batches, 300)
        _break_and_await(cassandra, keyspace, own, WARM)  # the first looks are slower than others
        began = time.time()
        written = _break_and_await(cassandra, keyspace, own, BROKEN)
        repaired, all_of_them = _repairs(cassandra, own), WARM + BROKEN
        until("they hold", lambda: _states(cassandra, own).count("verified") >= all_of_them, 180)
        assert stream.stop() == 0
    took = sorted(repaired[key] - at for key, at in written.items())
    batches = [batch for batch in read_trace(tmp_path / "trace") if batch.ended_at > began]
    seconds = sorted(batch.seconds for batch in batches)
    publish(
        "From the oldest write to the repair",
        f"D = {DELAY:g} s, W = {WINDOW:g} s, a batch each {TRIGGER:g} s; {len(took)} messages whose"
        f" projection was never written, one each {EVERY:g} s. The repair's time is that of its"
        " journal entry, which is written just before it. Aim: a median below"
        f" {DELAY + WINDOW + 2.5:g} s.",
        table(
            ("seconds", "median", "p99", "largest"),
            [
                ("oldest write to repair", *_spread(took)),
                ("duration of a batch", *_spread(seconds)),
            ],
        ),
    )


@contextmanager
def watched(
    running: Running, cassandra: Session, folder: Path
) -> Iterator[tuple[Stream, str, str]]:
    """A keyspace of its own and a stream that repairs it."""
    name, stack = uuid.uuid4().hex[:8], running.endpoints
    keyspace, own = f"bench_{name}", f"bench_{name}_own"
    make_mail_tables(running, cassandra, keyspace)
    config = bench_settings(
        folder,
        stack,
        keyspace,
        own,
        {"stream": {"delay": DELAY, "window": WINDOW, "trigger": TRIGGER}},
    )
    begin_at_the_end(cassandra, config)
    environment = {TRACE: str(folder / "trace"), **LONG_LIVED}
    with Stream(config, environment=environment, program=module("tests.bench.traced")) as stream:
        yield stream, keyspace, own
    for each in (keyspace, own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


def _break_and_await(session: Session, keyspace: str, own: str, rows: int) -> dict[str, float]:
    """Break so many rows, and wait until each is repaired; when each was written, by its key."""
    written = dict(_break_rows(session, keyspace, rows))
    until("each is repaired", lambda: written.keys() <= _repairs(session, own).keys(), 180)
    return written


def _break_rows(session: Session, keyspace: str, rows: int) -> Iterator[tuple[str, float]]:
    """Messages that reach the truth only; the key of each, and when it was written."""
    chance, truth = random.Random(3), Truth(session, keyspace, Clock())
    mailboxes = [new_timeuuid() for _ in range(8)]
    for number in range(rows):
        flags = random_flags(chance)
        message = Message(
            random_content(chance),
            mailboxes[number % len(mailboxes)],
            uid=number + 1,
            modseq=number + 1,
            flags=Flags(flags.system, flags.user),
        )
        at = time.time()
        truth.insert(message)
        yield text_of(slot_of(message)), at
        time.sleep(max(0.0, at + EVERY - time.time()))


def _repairs(session: Session, own: str) -> dict[str, float]:
    """When the first repair of each row was noted in the journal, by its key."""
    found: dict[str, float] = {}
    for row in session.execute(f"SELECT at, key, state FROM {own}.finding_log"):
        if row.state == "intended":
            at = unix_time_from_uuid1(row.at)
            found[row.key] = min(at, found.get(row.key, at))
    return found


def _states(session: Session, own: str) -> list[str]:
    return [row.state for row in session.execute(f"SELECT state FROM {own}.finding_log")]


def _spread(numbers: list[float]) -> tuple[float, float, float]:
    if not numbers:
        return (0.0, 0.0, 0.0)
    p99 = numbers[min(len(numbers) - 1, round(0.99 * (len(numbers) - 1)))]
    return statistics.median(numbers), p99, numbers[-1]
