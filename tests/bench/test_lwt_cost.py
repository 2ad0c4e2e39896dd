"""What lightweight transactions cost under James's write pattern, at several rates.

The same operations with James's strong reads and writes on, and off. Draws docs/lwt.png.
"""

import random
import uuid
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import matplotlib
import pytest
from cassandra.cluster import Session
from matplotlib import pyplot

from deploy.mailserver import james
from deploy.mailserver.variant import Variant
from deploy.mailserver.workload import Workload, run
from reconcilers.lwt.cost import Cost, mean_ms, sentence
from reconcilers.lwt.statements import Metric
from streaming.commands.lwt.report_shown import Shown, as_text
from streaming.settings import load
from tests.bench.report import publish, table
from tests.endpoints import Endpoints
from tests.stack.reporting import Report, reporting

pytestmark = pytest.mark.bench

matplotlib.use("agg")
ON, OFF = "on", "off"
STRENGTHS = {ON: Variant(), OFF: Variant(strong_reads=False, strong_writes=False)}
RATES = (25, 50, 100)
"""Operations a second."""
SECONDS, REPETITIONS, WORKERS = 15, 3, 8
PICTURE, PAGE = Path("docs/lwt.png"), Path("docs/lwt.md")
Runs = dict[tuple[str, int], list["Measured"]]


@dataclass(frozen=True)
class Measured:
    """One run of so many operations, and what Cassandra counted meanwhile."""

    operations: int
    cost: Cost

    @property
    def cpu(self) -> float:
        """Cassandra's processor time for one operation, ms."""
        return self.cost.work.whole[Metric.CPU_NANOS] / 1e6 / self.operations

    def truth_phases(self, keyspace: str) -> int:
        """Rounds of lightweight transactions and serial reads of the truth."""
        return self.cost.work.tables[keyspace, "imapuidtable"].get(Metric.PREPARES, 0)

    def each(self, metric: Metric) -> float:
        """Of all tables of all keyspaces, for one operation."""
        tables = self.cost.work.tables
        return sum(counts.get(metric, 0) for counts in tables.values()) / self.operations

    def share(self, kind: str) -> float:
        """What of it was on system.paxos."""
        return self.cost.shares[kind].part or 0.0


@pytest.fixture(scope="module")
def keyspace(cassandra: Session) -> str:
    """James's tables without change capture: only users are measured."""
    name = f"bench_{uuid.uuid4().hex[:8]}"
    james.create_schema(cassandra, name)
    return name


def test_lwt_cost(stack: Endpoints, cassandra: Session, keyspace: str) -> None:
    runs: Runs = defaultdict(list)
    with reporting(load(stack.config, {}).cassandra) as report:
        _work(report, cassandra, keyspace, (ON, RATES[0]), 0)  # warm caches and compilers
        for repetition in range(1, REPETITIONS + 1):
            variants = [(strength, rate) for rate in RATES for strength in STRENGTHS]
            random.Random(repetition).shuffle(variants)
            for variant in variants:
                runs[variant].append(_work(report, cassandra, keyspace, variant, repetition))
    for (strength, _), several in runs.items():
        assert all(each.cost.known_by_table for each in several)
        assert all(each.truth_phases(keyspace) == 0 for each in several) == (strength == OFF)
    _publish(runs, keyspace)
    draw(runs, PICTURE)


def _work(
    report: Report, session: Session, keyspace: str, variant: tuple[str, int], seed: int
) -> Measured:
    strength, rate = variant
    workload = Workload(
        operations=rate * SECONDS,
        rate=rate,
        workers=WORKERS,
        seed=seed,
        variant=STRENGTHS[strength],
    )
    return Measured(workload.operations, report(lambda: run(session, keyspace, workload)))


def _publish(runs: Runs, keyspace: str) -> None:
    sample = runs[ON, RATES[-1]][-1].cost
    shown = Shown(keyspace, frozenset(each.table[1] for each in sample.tables), "reconciler", "v1")
    example = "\n".join(as_text(sample, shown)).replace(keyspace, "apache_james")
    publish(
        "Under James's write pattern",
        f"{REPETITIONS} runs of {SECONDS} s of each variant, in a different order each time, with"
        " the simulated mail server (`deploy/mailserver`) on one node with one copy of each row."
        " The table has the mean of the runs, and in brackets the least and the greatest. The"
        " simulated mail server takes UIDs and MODSEQs from memory. James takes each by a"
        " lightweight transaction (`messagecounter`, `modseq`), strong or not, so a real James has"
        " more of them. *Off* means that `message.read.strong.consistency` and"
        " `message.write.strong.consistency.unsafe` are both false; only the path of each new"
        " mailbox remains.",
        "![cost of lightweight transactions](lwt.png)",
        table(
            (
                "operations/s",
                "strong",
                "CPU ms an operation",
                "replica writes an operation",
                "replica reads an operation",
                "paxos of writes",
                "paxos of reads",
                "LWT mean ms",
            ),
            [
                _row(runs[strength, rate], strength, rate)
                for rate in RATES
                for strength in STRENGTHS
            ],
        ),
        "Processor time of an operation with strong reads and writes, divided by that without: "
        + ", ".join(_ratios(runs))
        + ".",
        f"The report on the last run at {RATES[-1]} operations a second:",
        f"```\n{example}\n```",
        page=PAGE,
    )
    print(sentence(sample, keyspace))


def _row(several: list[Measured], strength: str, rate: int) -> tuple[object, ...]:
    lwt = [
        mean_ms(each.cost.work.whole, Metric.CAS_WRITES, Metric.CAS_WRITE_MICROS)
        for each in several
    ]
    known = [each for each in lwt if each is not None]
    return (
        rate,
        strength,
        _spread([each.cpu for each in several], "{:.2f}"),
        _spread([each.each(Metric.WRITES) for each in several], "{:.1f}"),
        _spread([each.each(Metric.READS) for each in several], "{:.1f}"),
        _spread([each.share("writes") for each in several], "{:.0%}"),
        _spread([each.share("reads") for each in several], "{:.0%}"),
        _spread(known, "{:.2f}") if known else "-",
    )


def _spread(values: list[float], form: str) -> str:
    low, middle, high = (form.format(f(values)) for f in (min, mean, max))
    return f"{middle} ({low}–{high})"


def _ratios(runs: Runs) -> list[str]:
    """Of runs of the same repetition, on to off."""
    told = []
    for rate in RATES:
        pairs = zip(runs[ON, rate], runs[OFF, rate], strict=True)
        ratios = [on.cpu / off.cpu for on, off in pairs]
        told.append(f"{_spread(ratios, '{:.2f}')} at {rate} operations a second")
    return told


def draw(runs: Runs, path: Path) -> None:
    """The picture."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 4))
    for place, strength in enumerate(STRENGTHS):
        at = [number + 0.35 * place for number in range(len(RATES))]
        several = [[each.cpu for each in runs[strength, rate]] for rate in RATES]
        means = [mean(values) for values in several]
        reach = [
            [middle - min(values) for middle, values in zip(means, several, strict=True)],
            [max(values) - middle for middle, values in zip(means, several, strict=True)],
        ]
        left.bar(at, means, 0.35, yerr=reach, capsize=3, label=f"strong {strength}")
        shares = [mean([each.share("writes") for each in runs[strength, rate]]) for rate in RATES]
        right.bar(at, shares, 0.35, label=f"strong {strength}")
    for axes, title in (
        (left, "Cassandra's CPU, ms an operation"),
        (right, "share of system.paxos in all replica writes"),
    ):
        axes.set_xticks([number + 0.175 for number in range(len(RATES))], map(str, RATES))
        axes.set_xlabel("operations a second")
        axes.set_title(title, fontsize=10)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)
