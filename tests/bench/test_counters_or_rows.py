"""The same changes counted in counters and in rows: speed, cost, and what each loses or doubles.

Writes docs/counters-or-rows.md and its pictures. `tests.bench.counter_rows` says how.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.spec import CassandraRelease
from deploy.mailserver.faults import FaultKind, Faults
from tests.bench.counter_rows.disturbed import (
    EVENT_FAULTS,
    Disturbed,
    planted_in,
    run_all,
    share_done,
)
from tests.bench.counter_rows.node import LoneNode, lone_node
from tests.bench.counter_rows.plots import draw_harms, draw_speeds
from tests.bench.counter_rows.race import Load, Speed, measure
from tests.bench.counter_rows.summary import (
    HEADER,
    READ_HEADER,
    Harm,
    harm_rows,
    read_rows,
    table_rows,
)
from tests.bench.counter_rows.tables import CounterTable, Counting
from tests.bench.counter_rows.ways import DISTURBED, RACING, STREAMED
from tests.bench.counter_rows.wire import Place
from tests.bench.counter_rows.workload import HOT, MANY, MARKS
from tests.bench.report import is_quick, publish, table
from tests.stack.streams import until

pytestmark = pytest.mark.bench

PAGE = Path("docs/counters-or-rows.md")
SPEEDS, HARMS = Path("docs/counters-or-rows.png"), Path("docs/counters-or-rows-faults.png")
RAW = Path("build")
"""Where the single runs go, for whoever wants to look closer."""
REPETITIONS, SECONDS = (1, 0.5) if is_quick() else (3, 2.0)
WARM_SECONDS = SECONDS
WRITERS = (1, 4, 16)
READS = 200
LOADS = [
    Load(shape, writers, READS if (shape, writers) == (HOT, WRITERS[-1]) else 0)
    for shape in (HOT, MANY)
    for writers in WRITERS
]
Way = type[Counting]
PLANTED = {
    "applied, but timed out": FaultKind.APPLIED_BUT_TIMED_OUT,
    "lost, and timed out": FaultKind.LOST_BUT_TIMED_OUT,
    "the writer is killed": FaultKind.DIED_BETWEEN_WRITES,
    "an event comes twice": FaultKind.DOUBLED,
    "an event is lost": FaultKind.NOT_SENT,
}
FAULTS, MAILBOXES = 30, 20
"""Of one way, kind and repetition."""


@pytest.fixture(scope="module")
def node(release: CassandraRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneNode]:
    with lone_node(tmp_path_factory.mktemp("node"), release) as started:
        yield started


def turned(ways: Sequence[Way], repetition: int) -> list[Way]:
    """In another order at each repetition."""
    first = repetition * 2 % len(ways)
    return [*ways[first:], *ways[:first]]


def made(way: Way, node: LoneNode, faults: Faults | None = None) -> Counting:
    counting = way(Place.at(node.session, node.keyspace, faults))
    counting.create()
    return counting


def test_speed_and_cost(node: LoneNode) -> None:
    for way in RACING:
        for shape in (HOT, MANY):
            measure(made(way, node), Load(shape, 4), 0, WARM_SECONDS, node.spent)
    speeds: list[Speed] = []
    for repetition in range(REPETITIONS):
        speeds += [
            measure(made(way, node), load, repetition, SECONDS, node.spent)
            for load in LOADS
            for way in turned(RACING, repetition)
        ]
        keep("speeds", speeds)
    tell_speeds(speeds)
    assert [each for each in speeds if each.wrong] == []


def test_what_planted_faults_do(node: LoneNode) -> None:
    changes = MAILBOXES * MARKS
    harms = []
    for repetition in range(REPETITIONS):
        for disturbance, kind in PLANTED.items():
            for way in turned(STREAMED if kind in EVENT_FAULTS else DISTURBED, repetition):
                faults = planted_in(kind, repetition, FAULTS, changes)
                run = Disturbed(made(way, node, faults), MAILBOXES, 4, repetition)
                run_all([run])
                _, met = faults.ledger.progress()
                harms.append(harm(run, disturbance, repetition, met))
    keep("faults", harms)
    tell_harms(
        "Planted faults",
        f"{REPETITIONS} times {FAULTS} faults of each kind among {changes} changes of each way,"
        " with 4 writers. Of each number the sum, and the least and the most of a repetition."
        f"\n\n![lost and doubled]({HARMS.name})",
        harms,
    )
    if not is_quick():
        draw_harms(harms, HARMS)


def test_what_a_restart_does(node: LoneNode) -> None:
    harms = []
    for repetition in range(REPETITIONS):
        for name, stop in (("node stopped", node.server.stop), ("node killed", node.server.kill)):
            runs = [
                Disturbed(made(way, node), MAILBOXES, 8, repetition)
                for way in turned(DISTURBED, repetition)
            ]
            run_all(runs, partial(restart, node, stop, runs))
            harms += [harm(run, name, repetition, 1) for run in runs]
    keep("restarts", harms)
    lost = sum(each.truth_lost for each in harms)
    tell_harms(
        "A restarted node",
        f"{REPETITIONS} times stopped in order and {REPETITIONS} times killed (SIGKILL), under the"
        f" load of all ways at once, 8 writers each, {MAILBOXES * MARKS} changes a way. Of the"
        f" changes that the truth had acknowledged it had itself lost {lost} afterwards.",
        harms,
    )


def restart(node: LoneNode, stop: Callable[[], None], runs: Sequence[Disturbed]) -> None:
    until("a third is done", lambda: share_done(runs) > 1 / 3)
    stop()
    node.start()


def harm(run: Disturbed, disturbance: str, repetition: int, planted: int) -> Harm:
    found, lost = run.verdict(), run.missing_in_truth()
    return Harm(run.counting.name, disturbance, repetition, planted, found, lost)


def keep(name: str, values: Sequence[Any]) -> None:
    RAW.mkdir(exist_ok=True)
    text = json.dumps([asdict(each) for each in values], indent=1)
    (RAW / f"counters-or-rows-{name}.json").write_text(f"{text}\n", encoding="utf-8")


def tell_speeds(speeds: Sequence[Speed]) -> None:
    base = CounterTable.name
    publish(
        "Speed and cost",
        f"{REPETITIONS} repetitions of {SECONDS:g} s a line, the order of the ways another in each:"
        " the median, and in brackets the least and the most. A ratio is to the counters' run of"
        " the same repetition. *µs* is CPU time a change, of Cassandra and of the client with all"
        " its writers; reads and writes are Cassandra's own count, a change. Of the stream p50 and"
        " p99 are the time until a change shows; where nobody waits, until the topic has room.",
        f"![speed and cost]({SPEEDS.name})",
        *(
            f"**{name.capitalize()}**\n\n{table(HEADER, table_rows(speeds, name, base))}"
            for name in (HOT.name, MANY.name)
        ),
        f"One read of a mailbox's numbers, after {WRITERS[-1]} writers have written them:",
        table(READ_HEADER, read_rows(speeds, HOT.name, WRITERS[-1])),
        page=PAGE,
    )
    if not is_quick():
        draw_speeds(speeds, SPEEDS)


def tell_harms(title: str, text: str, harms: Sequence[Harm]) -> None:
    disturbances = list(dict.fromkeys(each.disturbance for each in harms))
    rows = harm_rows(harms, disturbances)
    publish(title, text, table(("way", *disturbances), rows), page=PAGE)
