"""Messages that a sweep compares a second, what it costs, and what it remembers of each."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from deploy.mailserver import james
from deploy.mailserver.filler import fill
from tests.bench.backlog import LONG_LIVED, MAILBOXES, bench_settings
from tests.bench.conftest import caches_of
from tests.bench.report import publish, table
from tests.endpoints import Endpoints, Running
from tests.processes import (
    COMPILER,
    DRIVER,
    JVM,
    NAMES,
    SERVERS,
    WORKERS,
    CpuWatch,
    Spent,
    servers_of,
)
from tests.stack.scenes import begin_at_the_end
from tests.stack.streams import until

pytestmark = pytest.mark.bench

MESSAGES = int(os.environ.get("BENCH_SWEPT", "1000000"))
"""Fewer for a quick try."""
BOTH_TABLES = 2
ONE_BY_ONE = 3_000
RATES = (0, 1_000, 2_000, 4_000)
"""Rows a second; at 0 nothing is swept."""
PACED = 45.0
"""Seconds that each of them is watched."""
TOLD = re.compile(r"^(\w+)(, ahead| and \d+ more)?: (\d+) of (\d+) ranges")
OURS = (JVM, COMPILER, WORKERS, DRIVER)
OWN_TABLES_FLUSHED_AFTER = 2_000
"""Milliseconds: so what was written is seen on disk."""


@dataclass
class Sweep:
    """One run of the command. Seconds since the epoch; ``began`` when its first table was begun."""

    began: float = 0.0
    ended: float = 0.0
    spent: Spent = field(default_factory=dict)
    rss: float = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def micros(self, name: str) -> float:
        """Core-µs a message."""
        return self.spent.get(name, 0.0) / MESSAGES * 1e6

    @property
    def ours(self) -> float:
        return sum(map(self.micros, OURS))


@dataclass(frozen=True)
class Swept:
    """A keyspace in which everything is right, and nothing is captured."""

    stack: Endpoints
    keyspace: str
    own: str
    folder: Path

    def sweep(self, master: str = "local[2]", *words: str, most: float | None = None) -> Sweep:
        """One, from its beginning to its end, or for so many seconds."""
        sections: dict[str, dict[str, Any]] = {
            "stream": {"master": master},
            "sweep": {"rows_per_second": 10_000_000},
        }
        config = bench_settings(self.folder, self.stack, self.keyspace, self.own, sections)
        command = [
            sys.executable,
            "-m",
            "streaming.app",
            "sweep",
            "--mode",
            "repair",
            *words,
        ]
        process = subprocess.Popen(
            [*command, "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            env={**os.environ, **LONG_LIVED},
        )
        made = Sweep()
        assert process.stderr is not None
        with CpuWatch(servers_of(self.stack), process.pid) as watch:
            for line in process.stderr:
                if TOLD.match(line) and not made.began:
                    made.began = time.time()
                    if most is not None:
                        time.sleep(most)  # a time is what is measured here
                        made.ended = time.time()
                        process.send_signal(signal.SIGTERM)
                if TOLD.match(line) and most is None:
                    made.ended = time.time()
            output = process.stdout.read() if process.stdout is not None else ""
            code = process.wait()
        assert code == 0 or most is not None, output
        made.spent, made.rss = watch.between(made.began, made.ended), watch.rss
        return made


@pytest.fixture(scope="module")
def swept(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Swept]:
    with filled(running.endpoints, cassandra, tmp_path_factory.mktemp("sweep"), MESSAGES) as made:
        yield made


@contextmanager
def filled(stack: Endpoints, cassandra: Session, folder: Path, messages: int) -> Iterator[Swept]:
    """A keyspace with so many messages, which is dropped afterwards."""
    name = uuid.uuid4().hex[:8]
    keyspace, own = f"bench_{name}", f"bench_{name}_own"
    james.create_schema(cassandra, keyspace)
    made = Swept(stack, keyspace, own, folder)
    config = bench_settings(made.folder, stack, keyspace, own, {})
    begin_at_the_end(cassandra, config)
    fill(cassandra, keyspace, messages, min(MAILBOXES, messages // 10))
    yield made
    for each in (keyspace, own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


def test_a_sweep_of_messages_that_are_right(swept: Swept, cassandra: Session) -> None:
    runs = {"the first, which fills memory": swept.sweep(), "the next": swept.sweep()}
    remembered = bytes_of(cassandra, swept.own) / MESSAGES
    runs["the next, `local[1]`"] = swept.sweep("local[1]")
    one_by_one = row_by_row(cassandra, swept.keyspace)
    again = runs["the next"]
    rate = MESSAGES / again.seconds
    publish_here(
        "A sweep",
        f"{MESSAGES:,} messages in {MAILBOXES} mailboxes, both tables agree; the truth and the"
        " projection are read whole (the projection by the next ones twice, first ahead of the"
        " truth), and each row is compared with the other table's. Aim: 10,000 messages/s of the"
        f" next, 20,000 if it can be. {caches_of(cassandra)}.",
        table(
            ("sweep", "messages/s", "rows/s", "seconds", "worker MiB"),
            [
                (
                    name,
                    round(MESSAGES / run.seconds),
                    round(BOTH_TABLES * MESSAGES / run.seconds),
                    run.seconds,
                    round(run.rss),
                )
                for name, run in runs.items()
            ],
        ),
        "CPU by process, core-µs a message:",
        table(
            ("sweep", *NAMES, "ours", "sum", "cores in use"),
            [
                (
                    name,
                    *map(run.micros, NAMES),
                    run.ours,
                    sum(run.spent.values()) / MESSAGES * 1e6,
                    sum(run.spent.values()) / run.seconds,
                )
                for name, run in runs.items()
            ],
        ),
        f"Row by row (a page of the truth, and for each of its rows one SELECT of the projection,"
        f" {ONE_BY_ONE:,} of them, by the same driver): {one_by_one:,.0f} messages/s; the sweep is"
        f" **{rate / one_by_one:.1f}** times as fast, and compares the other direction too. Memory"
        f" of a message takes {remembered:,.0f} bytes on each copy's disk.",
    )
    assert rate >= 10 * one_by_one


def test_what_a_rate_costs_the_mail_server(swept: Swept) -> None:
    servers = servers_of(swept.stack)
    costs = {rate: cost_at(swept, rate, servers) for rate in RATES}
    publish_here(
        "A sweep by its rate",
        "`reconcile sweep --rate`: what Cassandra spends, percent of one core, and more than"
        f" without a sweep; each watched for {PACED:g} s.",
        table(
            ("rows/s", "Cassandra, %", "more, %", "for each row more, core-µs"),
            [
                (
                    rate,
                    cost * 100,
                    (cost - costs[0]) * 100,
                    (cost - costs[0]) / rate * 1e6 if rate else 0.0,
                )
                for rate, cost in costs.items()
            ],
        ),
    )


def cost_at(swept: Swept, rate: int, servers: dict[str, int]) -> float:
    """Cores that Cassandra has in use meanwhile."""
    name = next(iter(SERVERS))
    if rate:
        run = swept.sweep("local[2]", "--rate", str(rate), most=PACED)
        return run.spent[name] / run.seconds
    with CpuWatch(servers, os.getsid(0)) as watch:
        time.sleep(PACED)
    (began, _), (ended, _) = watch.samples[0], watch.samples[-1]
    return watch.between(began, ended)[name] / (ended - began)


def publish_here(title: str, *parts: str) -> None:
    """Only of a million messages the page tells."""
    if MESSAGES == 1_000_000:
        publish(title, *parts)
    else:
        print("\n\n".join([title, *parts]))


def row_by_row(session: Session, keyspace: str) -> float:
    """Messages a second, as a straightforward script compares them."""
    read = SimpleStatement(f"SELECT * FROM {keyspace}.imapuidtable", fetch_size=ONE_BY_ONE)
    other = session.prepare(
        f"SELECT * FROM {keyspace}.messageidtable WHERE mailboxid = ? AND uid = ?"
    )
    rows = session.execute(read).current_rows
    began = time.monotonic()
    right = sum(_agree(row, session.execute(other, (row.mailboxid, row.uid)).one()) for row in rows)
    assert right == len(rows)
    return len(rows) / (time.monotonic() - began)


def _agree(truth: Any, projected: Any) -> bool:
    return all(
        value == getattr(projected, name)
        for name, value in truth._asdict().items()
        if hasattr(projected, name)
    )


def bytes_of(session: Session, keyspace: str) -> float:
    """What the tables of a keyspace take on this node's disk, once they are written there."""
    query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    names = [row.table_name for row in session.execute(query, [keyspace])]
    for name in names:
        session.execute(
            f"ALTER TABLE {keyspace}.{name}"
            f" WITH memtable_flush_period_in_ms = {OWN_TABLES_FLUSHED_AFTER}"
        )
    sizes: list[Sequence[float]] = []

    def settled() -> bool:
        usage = "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = %s"
        sizes.append(
            [row.mebibytes for row in session.execute(f"{usage} ALLOW FILTERING", [keyspace])]
        )
        return len(sizes) > 30 and sizes[-1] == sizes[-30]

    until("all is on disk", settled)
    return sum(sizes[-1]) * 2**20
