"""What a worker spends to screen mailboxes, without servers: the first step of counting."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable

import pytest

from reconcilers.declared.family import bind
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from streaming.pipeline.screen_job import ScreenJob
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from tests.bench.report import publish, table
from tests.bench.test_driver_slice import cpu_ms
from tests.builders.mail_rows import fake_tables
from tests.builders.screened_mail import screened_mail
from tests.builders.server_screening import screening_at
from tests.fakes.cql_server import serving
from tests.processes import spent_by

pytestmark = pytest.mark.bench

SIZES = ((5_000, 20), (1_000, 300))
"""How many mailboxes, and messages of the chunk that has changed in each."""
WRONG, ROUNDS = 5, 5
PROMISED = 10_000
"""Mailboxes a second on two cores, of the smaller chunks."""


def test_what_a_worker_spends() -> None:
    spent = {size: spent_on(*size) for size in SIZES}
    lines = [
        (messages, worker, server, round(2e6 / worker))
        for (_, messages), (worker, server) in spent.items()
    ]
    publish(
        "Screening of mailboxes",
        "CPU time, µs a mailbox, of one worker and of the fake server apart: mailboxes with a"
        " changed chunk each, and a counter. Counts are written. Without quotas; median of"
        f" {ROUNDS} rounds of 5,000 and of 1,000 mailboxes.",
        table(("messages", "worker", "fake server", "mailboxes a second on two cores"), lines),
        f"Promised: {PROMISED:,} a second.",
    )
    assert lines[0][-1] >= PROMISED


def spent_on(mailboxes: int, messages: int) -> tuple[float, float]:
    """CPU time, µs a mailbox, of the worker and of the server."""
    ids, rows = screened_mail(mailboxes, messages, WRONG)
    with serving(list(fake_tables("mail", "own", rows))) as port:
        (server,) = multiprocessing.active_children()
        cassandra = {"port": port, "keyspace": "mail", "own_keyspace": "own"}
        settings = Settings.model_validate({"cassandra": cassandra})
        family = bind(settings.families()[0], schema_of(connect(settings.cassandra), "mail"))
        screening = screening_at(ScreenJob(settings, family, [MAILBOX_COUNTERS], 0, screening_at))

        def screen() -> None:
            assert screening.of(ids).suspected.keys() == {*ids[:WRONG]}

        screen()  # statements are prepared, answers are put together
        spent = [(cpu_ms(screen), _of_server(server.pid, screen)) for _ in range(ROUNDS)]
    worker, servers = (
        1_000 * statistics.median(each) / mailboxes for each in zip(*spent, strict=True)
    )
    return worker, servers


def _of_server(process: int | None, screen: Callable[[], None]) -> float:
    assert process is not None
    servers = {"server": process}
    before = spent_by(servers, 0)["server"]
    screen()
    return 1_000 * (spent_by(servers, 0)["server"] - before)
