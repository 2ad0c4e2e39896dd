"""What a worker spends to screen mailboxes, without servers: the first step of counting."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pytest

from reconcilers.declared.family import bind
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Tally
from streaming.pipeline.screen_job import ScreenJob
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from tests.bench.report import publish, table
from tests.bench.test_driver_slice import cpu_ms
from tests.builders.mail_rows import fake_tables
from tests.builders.screened_mail import Row, screened_mail, with_quotas
from tests.builders.server_screening import screening_at
from tests.fakes.cql_server import serving
from tests.processes import spent_by

pytestmark = pytest.mark.bench

WRONG, ROUNDS = 5, 5
PROMISED = 10_000
"""Mailboxes a second on two cores, of the smaller chunks."""


@dataclass(frozen=True)
class Size:
    """How many mailboxes, and messages of the chunk that has changed in each.

    With ``of_a_user`` quotas are screened too: each user has so many mailboxes, of which
    ``changed`` have changed and are screened.
    """

    mailboxes: int
    messages: int
    of_a_user: int = 0
    changed: int = 0

    @property
    def tallies(self) -> list[Tally]:
        return [MAILBOX_COUNTERS, CURRENT_QUOTA] if self.of_a_user else [MAILBOX_COUNTERS]

    @property
    def told(self) -> str:
        return f"{self.changed} of {self.of_a_user}" if self.of_a_user else "no quotas"

    def mail(self) -> tuple[list[UUID], set[UUID], dict[str, list[Row]]]:
        """The mailboxes that are screened, those whose counter is wrong, and all rows."""
        ids, rows = screened_mail(self.mailboxes, self.messages, WRONG)
        wrong = {*ids[:WRONG]}
        if not self.of_a_user:
            return ids, wrong, rows
        changed = with_quotas(ids, rows, self.of_a_user, self.changed)
        return changed, wrong & {*changed}, rows


SIZES = (Size(5_000, 20), Size(1_000, 300), Size(5_000, 20, 10, 10), Size(5_000, 20, 10, 2))


def test_what_a_worker_spends() -> None:
    lines: list[tuple[int, str, float, float, int]] = []
    for size in SIZES:
        worker, server = spent_on(size)
        lines.append((size.messages, size.told, worker, server, round(2e6 / worker)))
    publish(
        "Screening of mailboxes",
        "CPU time, µs a mailbox, of one worker and of the fake server apart: mailboxes with a"
        " changed chunk each, and a counter. Counts are written. *2 of 10*: with quotas, each user"
        " has ten mailboxes, of which two have changed. Median of"
        f" {ROUNDS} rounds of 1,000 to 5,000 mailboxes.",
        table(
            ("messages", "quotas", "worker", "fake server", "mailboxes a second on two cores"),
            lines,
        ),
        f"Promised: {PROMISED:,} a second.",
    )
    assert lines[0][-1] >= PROMISED


def spent_on(size: Size) -> tuple[float, float]:
    """CPU time, µs a mailbox, of the worker and of the server."""
    ids, wrong, rows = size.mail()
    with serving(list(fake_tables("mail", "own", rows))) as port:
        (server,) = multiprocessing.active_children()
        cassandra = {"port": port, "keyspace": "mail", "own_keyspace": "own"}
        settings = Settings.model_validate({"cassandra": cassandra})
        family = bind(settings.families()[0], schema_of(connect(settings.cassandra), "mail"))
        screening = screening_at(ScreenJob(settings, family, size.tallies, 0, screening_at))

        def screen() -> None:
            assert screening.of(ids).suspected.keys() == wrong

        screen()  # statements are prepared, answers are put together
        spent = [(cpu_ms(screen), _of_server(server.pid, screen)) for _ in range(ROUNDS)]
    worker, servers = (
        1_000 * statistics.median(each) / len(ids) for each in zip(*spent, strict=True)
    )
    return worker, servers


def _of_server(process: int | None, screen: Callable[[], None]) -> float:
    assert process is not None
    servers = {"server": process}
    before = spent_by(servers, 0)["server"]
    screen()
    return 1_000 * (spent_by(servers, 0)["server"] - before)
