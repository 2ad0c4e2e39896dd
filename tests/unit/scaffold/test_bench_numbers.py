"""What the benchmarks say of a run: CPU by process, and a rate without the beginning."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.bench.backlog import CHANGES, Measured
from tests.bench.traced import Batch
from tests.processes import DRIVER, CpuWatch, compiling_of, spent_by
from tests.stack.streams import until

BUSY = "while True: pass"


def test_between_two_samples_everything_is_spent_evenly() -> None:
    watch = CpuWatch({}, 0, [(10.0, {"a": 1.0}), (20.0, {"a": 3.0, "b": 4.0}), (30.0, {"a": 7.0})])
    assert watch.between(15.0, 20.0) == {"a": 1.0, "b": 2.0}
    assert watch.between(10.0, 25.0) == {"a": 4.0, "b": 4.0}
    assert watch.between(20.0, 99.0) == {"a": 4.0}
    assert CpuWatch({}, 0).between(1.0, 2.0) == {}


def test_a_session_spends_what_its_processes_spend() -> None:
    before = spent_by({"this": os.getpid()}, -1)
    with subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) as busy:
        try:
            until("it has spent some", lambda: spent_by({}, busy.pid).get(DRIVER, 0.0) > 0.1)
        finally:
            busy.kill()
    after = spent_by({"this": os.getpid()}, -1)
    assert after["this"] - before["this"] > 0.1  # it has waited for its child
    assert spent_by({}, busy.pid) == {}


def test_a_process_that_is_gone_compiles_nothing(tmp_path: Path) -> None:
    """It may go between two looks at it: the watch goes on."""
    assert compiling_of(tmp_path / "gone") == 0.0


def test_what_its_compiler_spends_is_told_of_a_process() -> None:
    spent, over = threading.Event(), threading.Event()

    def compiles() -> None:
        name = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        name.write_text("C2 CompilerThre")
        while time.thread_time() < 0.3:
            pass
        spent.set()
        over.wait()

    before = compiling_of(Path("/proc/self"))
    thread = threading.Thread(target=compiles)
    thread.start()
    spent.wait()
    after = compiling_of(Path("/proc/self"))
    over.set()
    thread.join()
    assert before == 0.0
    assert after > 0.2


def test_a_sustained_rate_leaves_out_the_batch_that_only_reads() -> None:
    batches = [
        batch(1, ended_at=10.0, seconds=10.0, events=100, examined=0),
        batch(2, ended_at=20.0, seconds=8.0, events=100, examined=50),
        batch(3, ended_at=24.0, seconds=4.0, events=0, examined=50),
    ]
    run = Measured(batches, 24.0, 0.0, {})
    assert run.sustained == CHANGES * 0.75 / 12
    assert Measured(batches[:1], 10.0, 0.0, {}).sustained == 0.0


def test_the_batches_of_a_run_are_divided_by_their_work() -> None:
    batches = [
        batch(1, ended_at=10.0, seconds=10.0, events=100, examined=0),
        batch(2, ended_at=20.0, seconds=10.0, events=100, examined=200),
        batch(3, ended_at=30.0, seconds=10.0, events=200, examined=200),
    ]
    watch = CpuWatch({}, 0, [(0.0, {}), (20.0, {DRIVER: 9.0}), (30.0, {DRIVER: 11.0, "b": 1.0})])
    run = Measured(batches, 30.0, 0.0, {}, changes=400, watch=watch)
    assert run.parts(2) == [batches[:2], batches[2:]]
    assert run.costs_of(batches[2:]) == {DRIVER: 2.0 / 200 * 1e6, "b": 1.0 / 200 * 1e6}


def batch(number: int, ended_at: float, seconds: float, events: int, examined: int) -> Batch:
    parts = {"triggerExecution": seconds}
    return Batch(number, ended_at, examined=examined, events=events, parts=parts)


def test_what_a_stream_spends_idle_is_not_spent_for_changes() -> None:
    spent, idle = {DRIVER: 12.0, "Cassandra": 50.0}, {DRIVER: 0.1, "Cassandra": 1.0}
    run = Measured([], 20.0, 0.0, spent, idle=idle)
    assert run.for_changes == 10.0
