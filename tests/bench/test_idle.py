"""What a stream spends while nobody writes mail."""

import time
import uuid
from pathlib import Path

import pytest
from cassandra.cluster import Session

from streaming.settings import StreamSettings
from tests.bench.backlog import EVERYTHING, LONG_LIVED, bench_settings
from tests.bench.report import publish, table
from tests.bench.traced import TRACE, read_trace
from tests.conftest import make_mail_tables
from tests.endpoints import Running
from tests.processes import COMPILER, DRIVER, JVM, NAMES, WORKERS, CpuWatch, servers_of
from tests.stack.scenes import begin_at_the_end
from tests.stack.streams import Stream, module, until

pytestmark = pytest.mark.bench

WARM, WATCHED = 900.0, 180.0
"""Seconds. An idle JVM compiles for ten minutes what it then runs for months."""
OURS = (JVM, COMPILER, WORKERS, DRIVER)


def test_a_stream_without_changes(running: Running, cassandra: Session, tmp_path: Path) -> None:
    stack, name = running.endpoints, uuid.uuid4().hex[:8]
    keyspace, own = f"bench_{name}", f"bench_{name}_own"
    make_mail_tables(running, cassandra, keyspace)
    usual = StreamSettings()
    delay, window = usual.delay, usual.window
    sections = {
        "stream": {"delay": delay, "window": window},
        "repair": EVERYTHING["repair"],
        "tally": {"projections": EVERYTHING["tally"]["projections"]},
    }
    config = bench_settings(tmp_path, stack, keyspace, own, sections)
    begin_at_the_end(cassandra, config)
    trace = tmp_path / "trace"
    stream = Stream(
        config, environment={TRACE: str(trace), **LONG_LIVED}, program=module("tests.bench.traced")
    )
    with stream, CpuWatch(servers_of(stack), stream.session) as watch:
        until("it has ended some batches", lambda: len(read_trace(trace)) > 3, 600)
        began = time.time()
        until("it is warm", lambda: time.time() > began + WARM, 2 * WARM)
        begin = time.time()
        until("it was watched", lambda: time.time() > begin + WATCHED, 2 * WATCHED)
        spent = watch.between(begin, begin + WATCHED)
        assert stream.stop() == 0
    batches = [batch for batch in read_trace(trace) if batch.began_at > begin]
    share = {each: spent.get(each, 0.0) / WATCHED * 100 for each in NAMES}
    publish(
        "An idle stream",
        f"Default settings (D = {delay:g} s, W = {window:g} s), all systems on, no change for"
        f" {WATCHED:g} s but the canaries, after {WARM / 60:g} minutes of the same: percent of one"
        " core, by process. *Ours* is Spark's JVM with its compiler, its workers and the driver."
        " Aim: at most 10.",
        table(
            (*NAMES, "ours", "batches"),
            [(*(share[each] for each in NAMES), sum(share[each] for each in OURS), len(batches))],
        ),
    )
