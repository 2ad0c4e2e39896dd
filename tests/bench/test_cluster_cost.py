"""What a change costs on a Spark cluster, against one process on this host: half an hour."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.embedded.settings_file import Sections
from deploy.embedded.spark_cluster import SparkCluster
from tests.bench.backlog import (
    CHANGES,
    LONG_LIVED,
    OURS,
    bench_settings,
    change_all,
    sized,
    work_off,
)
from tests.bench.conftest import TIMES, Filled
from tests.bench.report import publish, table
from tests.processes import COMPILER, Spent
from tests.stack.scenes import begin_at_the_end
from tests.stack.spark_looks import PACKAGES

pytestmark = pytest.mark.bench

FLAGS = ("flaganswered", "flagflagged", "flagdraft", "flagseen")
"""Each is turned over on every row. What comes first, warms up the JVMs, and does not count."""
MOST = 1.25
HERE, CLUSTER = "one host", "a cluster"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"))
    made.start()
    yield made
    made.stop()


def on(cluster: SparkCluster) -> Sections:
    """Sections for the cluster, whose executors compile as in production."""
    made = cluster.settings_for(PACKAGES)
    made["spark"]["spark.executor.extraJavaOptions"] = " ".join(LONG_LIVED.values())
    return made


def test_a_change_costs_little_more_on_a_cluster(
    filled: Filled, cassandra: Session, cluster: SparkCluster, tmp_path: Path
) -> None:
    """Two streams work off the same changes, one after the other, all rounds in one backlog."""
    sections: dict[str, Sections] = {HERE: {}, CLUSTER: on(cluster)}
    configs = {name: settings(filled, tmp_path / name, each) for name, each in sections.items()}
    for each in configs.values():
        begin_at_the_end(cassandra, each)
    for flag in FLAGS:
        change_all(cassandra, filled.config, filled.keyspace, flag)
    sessions = [pid for each in cluster.workers if (pid := each.daemon.pid()) is not None]
    found: dict[str, list[Spent]] = {}
    for name, config in configs.items():
        trace, executors = tmp_path / f"{name}.jsonl", sessions if name == CLUSTER else ()
        run = work_off(config, trace, filled.stack, executors, len(FLAGS))
        found[name] = [run.costs_of(each) for each in run.parts(len(FLAGS))]
    told = [
        (number, *compared(*costs))
        for number, costs in enumerate(zip(*found.values(), strict=True), start=1)
    ]
    times = statistics.median(each[-1] for each in told[1:])
    publish(
        sized("A stream on a cluster"),
        f"{len(FLAGS)} times {CHANGES:,} changes, on `local[2]` and on a standalone cluster of this"
        " host with two executors of one core, over the same events. Core-µs a change of the"
        " driver, the executors, Spark's workers and their Python, without Java's compiler, by"
        " quarters of the backlog. In the first one the JVMs warm up. The median of the others is"
        f" **{times:.2f}** times; the test asks for at most {MOST:g}.",
        table(("quarter", HERE, CLUSTER, "times"), told),
        "By process, core-µs a change, the median of the quarters after the first:",
        table(("of", HERE, CLUSTER), by_process(found)),
    )
    assert times <= MOST


def settings(filled: Filled, folder: Path, sections: Sections) -> Path:
    """A stream with a keyspace of its own for what it remembers."""
    folder.mkdir()
    own = f"{filled.own}_{folder.name.replace(' ', '_')}"
    made = {"stream": TIMES | sections.get("stream", {}), "spark": sections.get("spark", {})}
    return bench_settings(folder, filled.stack, filled.keyspace, own, made)


def compared(ours: Spent, theirs: Spent) -> tuple[int, int, float]:
    """Core-µs a change of both, and their ratio."""
    here, there = (sum(each.get(name, 0.0) for name in OURS) for each in (ours, theirs))
    return round(here), round(there), round(there / here, 2)


def by_process(found: Mapping[str, Sequence[Spent]]) -> list[tuple[str, int, int]]:
    """Core-µs a change of each process, when the JVMs are warm."""

    def median(name: str, process: str) -> int:
        return round(statistics.median(part.get(process, 0.0) for part in found[name][1:]))

    return [(each, median(HERE, each), median(CLUSTER, each)) for each in (*OURS, COMPILER)]
