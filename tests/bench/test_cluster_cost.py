"""What a change costs on a Spark cluster, against one process on this host: half an hour."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.embedded.settings_file import Sections
from deploy.embedded.spark_cluster import SparkCluster
from tests.bench.backlog import (
    CHANGES,
    LONG_LIVED,
    OURS,
    Measured,
    bench_settings,
    change_all,
    sized,
    work_off,
)
from tests.bench.conftest import TIMES, Filled
from tests.bench.report import publish, table
from tests.processes import COMPILER
from tests.stack.scenes import begin_at_the_end
from tests.stack.spark_looks import PACKAGES

pytestmark = pytest.mark.bench

FLAGS = ("flaganswered", "flagflagged", "flagdraft", "flagseen")
"""One is changed in each round; the first fills memory, and does not count."""
MOST = 1.25
HERE, CLUSTER = "one host", "a cluster"
Round = dict[str, Measured]


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
    """Two streams work off the same changes, one after the other, each first in every other one."""
    sections: dict[str, Sections] = {HERE: {}, CLUSTER: on(cluster)}
    configs = {name: settings(filled, tmp_path / name, each) for name, each in sections.items()}
    for each in configs.values():
        begin_at_the_end(cassandra, each)
    sessions = [pid for each in cluster.workers if (pid := each.daemon.pid()) is not None]
    rounds: list[Round] = []
    for number, flag in enumerate(FLAGS):
        change_all(cassandra, filled.config, filled.keyspace, flag)
        found = {}
        for name in (HERE, CLUSTER) if number % 2 else (CLUSTER, HERE):
            trace = tmp_path / f"{name}-{number}.jsonl"
            executors = sessions if name == CLUSTER else ()
            found[name] = work_off(configs[name], trace, filled.stack, executors)
        rounds.append(found)
    told = [(number, *costs(found)) for number, found in enumerate(rounds, start=1)]
    times = statistics.median(each[3] for each in told[1:])
    publish(
        sized("A stream on a cluster"),
        f"{CHANGES:,} changes, on `local[2]` and on a standalone cluster of this host with two"
        " executors of one core, over the same events; the order changes from round to round, and"
        " the first round fills memory. Core-µs a change of the driver, the executors, Spark's"
        " workers and their Python, without Java's compiler. The median of the"
        f" other rounds is **{times:.2f}** times; the test asks for at most {MOST:g}.",
        table(("round", HERE, CLUSTER, "times", "when warm", "on the cluster", "times"), told),
        "By process, core-µs a change, the median of the rounds after the first:",
        table(("of", HERE, CLUSTER), by_process(rounds[1:])),
    )
    assert times <= MOST


def settings(filled: Filled, folder: Path, sections: Sections) -> Path:
    """A stream with a keyspace of its own for what it remembers."""
    folder.mkdir()
    own = f"{filled.own}_{folder.name.replace(' ', '_')}"
    made = {"stream": TIMES | sections.get("stream", {}), "spark": sections.get("spark", {})}
    return bench_settings(folder, filled.stack, filled.keyspace, own, made)


def costs(found: Round) -> tuple[int | float, ...]:
    """Core-µs a change of both, and their ratio: of all batches, and of the second half."""
    here, there = (found[name] for name in (HERE, CLUSTER))
    told: list[int | float] = []
    for ours, theirs in ((here.own, there.own), (here.own_when_warm, there.own_when_warm)):
        told += [round(ours), round(theirs), round(theirs / ours, 2)]
    return tuple(told)


def by_process(rounds: Sequence[Round]) -> list[tuple[str, int, int]]:
    """Core-µs a change of each process."""

    def median(name: str, process: str) -> int:
        spent = [found[name].spent.get(process, 0.0) / CHANGES * 1e6 for found in rounds]
        return round(statistics.median(spent))

    return [(each, median(HERE, each), median(CLUSTER, each)) for each in (*OURS, COMPILER)]
