"""Changed keys examined a second, end to end, and where the time goes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cassandra.cluster import Session

from streaming.settings import load
from tests.bench.backlog import (
    ALL_FAMILIES,
    CHANGES,
    EVERYTHING,
    Measured,
    bench_settings,
    change_all,
    records,
    sized,
    work_off,
)
from tests.bench.conftest import TIMES, Filled, caches_of
from tests.bench.everything import fill_the_rest
from tests.bench.pieces import Pieces
from tests.bench.report import publish, table
from tests.processes import NAMES

pytestmark = pytest.mark.bench

GROWN_AT_MOST = 1.1
"""Times the memory of a worker after the first of its keys."""
FED = 10 * CHANGES
"""Keys that one worker is fed; its memory is shown each `CHANGES`."""
DELAYS = {5: "flagflagged", 45: "flagdraft"}
"""Seconds, and the flag that is changed meanwhile."""
ALL = "all families"
BATCH_PARTS = ("addBatch", "latestOffset", "queryPlanning", "walCommit", "commitOffsets")
STATE_PARTS = ("state updates", "state removals", "state commit")
"""Of all tasks together, so that two at a time count twice."""
RATES = (
    "changes/s",
    "sustained",
    "events/s",
    "seconds",
    "events",
    "looks",
    "batches",
    "worker MiB",
)


def test_a_backlog_is_worked_off(filled: Filled, cassandra: Session, tmp_path: Path) -> None:
    empty = work_off(filled.config, tmp_path / "empty.jsonl", filled.stack)
    captured_in = change_all(cassandra, filled.config, filled.keyspace, "flagseen")
    remembering = work_off(filled.config, tmp_path / "filled.jsonl", filled.stack)
    for each in (empty, remembering):
        assert each.examined >= CHANGES
        assert not sum(batch.suspects for batch in each.batches)
    settings = load(filled.config)
    publish(
        sized("Backlog, end to end"),
        f"{CHANGES:,} changes of as many rows wait in Kafka; both tables agree. D ="
        f" {settings.stream.delay:g} s and W = {settings.stream.window:g} s are part of the time."
        " `lineage empty`: new messages, first start. `lineage filled`: a flag changed on each;"
        " its two events name the row differently, so that two keys wait for each row.",
        _rates({"lineage empty": empty, "lineage filled": remembering}),
        "Seconds by part of a batch, as Spark tells them (`addBatch`: decode, settle, look; the"
        " state store's are within it, those of two tasks at a time added up):",
        _parts({"lineage empty": empty, "lineage filled": remembering}),
        "CPU by process, core-µs a change, from the beginning of the first busy batch to the end of"
        f" the last; {caches_of(cassandra)}:",
        _cpu({"lineage empty": empty, "lineage filled": remembering}),
        f"The agent had captured the new messages {filled.captured_in:.0f} s after the last was"
        f" written, the changes {captured_in:.0f} s after the first: it sends some events twice.",
    )


def test_all_systems_at_once(filled: Filled, cassandra: Session, tmp_path: Path) -> None:
    """As many changes, for messages alone, then with what follows messages, then all families."""
    fill_the_rest(cassandra, filled.keyspace)
    flags = {"messages alone": "flaganswered", "their systems": "flagflagged", ALL: "flagdraft"}
    configs = {"messages alone": filled.config} | {
        name: bench_settings(folder, filled.stack, filled.keyspace, filled.own, sections)
        for name, folder, sections in (
            ("their systems", _made(tmp_path / "systems"), {"stream": TIMES, **EVERYTHING}),
            (ALL, _made(tmp_path / "families"), {"stream": TIMES, **ALL_FAMILIES}),
        )
    }
    for config in (configs[ALL], configs["their systems"]):
        work_off(config, tmp_path / "rest.jsonl", filled.stack)
    runs: dict[str, Measured] = {}
    for name, flag in flags.items():
        change_all(cassandra, filled.config, filled.keyspace, flag)
        runs[name] = work_off(configs[name], tmp_path / f"{flag}.jsonl", filled.stack)
        assert not sum(batch.suspects for batch in runs[name].batches)
    alone, systems, families = (each.own for each in runs.values())
    publish(
        sized("All systems at once"),
        f"{CHANGES:,} changes for `messageIdTable` alone, as many with the four index tables,"
        " mailbox counters and quotas, and as many with every family on. Aim: at least half the"
        " rate of messages alone for their systems; all families at most 1.3 times their cost.",
        _rates(runs),
        f"CPU by process, core-µs a change; {caches_of(cassandra)}:",
        _cpu(runs),
        f"Own core-µs a change, without the compiler: {alone:.0f}, {systems:.0f} and"
        f" {families:.0f}; all families cost {families / systems:.2f} times what the systems of"
        " messages cost.",
    )
    assert runs["their systems"].seconds <= 2 * runs["messages alone"].seconds


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_longer_delay_costs_no_more(filled: Filled, cassandra: Session, tmp_path: Path) -> None:
    runs: dict[str, Measured] = {}
    change_all(cassandra, filled.config, filled.keyspace, "flaganswered")
    work_off(filled.config, tmp_path / "before.jsonl", filled.stack)  # with all that was before
    for delay, flag in DELAYS.items():
        times = {"stream": {"delay": delay, "window": 1}}
        config = bench_settings(tmp_path, filled.stack, filled.keyspace, filled.own, times)
        change_all(cassandra, filled.config, filled.keyspace, flag)
        runs[f"D = {delay} s"] = work_off(config, tmp_path / f"{delay}.jsonl", filled.stack)
    short, long = runs.values()
    publish(
        sized("A longer delay"),
        f"{CHANGES:,} changes, examined after a short and after a long delay. CPU of the stream's"
        " processes, core-µs a change, less what they spend idle in the same time, and without what"
        " Java compiles in its first minutes; a state row is a range of offsets that waits. Aim:"
        " at most 1.1 times as much.",
        table(
            ("", "core-µs a change", "seconds", "most state rows"),
            [
                (
                    name,
                    run.for_changes / CHANGES * 1e6,
                    run.seconds,
                    max(batch.state_rows for batch in run.batches),
                )
                for name, run in runs.items()
            ],
        ),
        f"The ratio is {long.for_changes / short.for_changes:.2f}.",
    )


def _rates(runs: dict[str, Measured]) -> str:
    return table(
        ("", *RATES),
        [
            (
                name,
                round(CHANGES / run.seconds),
                round(run.sustained),
                round(run.events / run.seconds),
                run.seconds,
                run.events,
                run.examined,
                len(run.batches),
                round(run.rss),
            )
            for name, run in runs.items()
        ],
    )


def _parts(runs: dict[str, Measured]) -> str:
    return table(
        ("", "all", *BATCH_PARTS, *STATE_PARTS),
        [
            (name, run.part("triggerExecution"), *map(run.part, (*BATCH_PARTS, *STATE_PARTS)))
            for name, run in runs.items()
        ],
    )


def _cpu(runs: dict[str, Measured]) -> str:
    """A column for each process that was found here, and what they spent together."""
    names = [name for name in NAMES if any(name in run.spent for run in runs.values())]
    return table(
        ("", *names, "sum", "cores in use"),
        [
            (
                name,
                *(run.spent.get(each, 0.0) / CHANGES * 1e6 for each in names),
                sum(run.spent.values()) / CHANGES * 1e6,
                sum(run.spent.values()) / run.seconds,
            )
            for name, run in runs.items()
        ],
    )


def test_where_the_time_goes_and_memory_stays(filled: Filled, tmp_path: Path) -> None:
    events = records(filled.config)
    pieces = Pieces(load(filled.config), tmp_path)
    try:
        keys = pieces.keys()  # and so Spark is warm
        read, decode, settle = pieces.read(), pieces.decode(), pieces.settle()
        pieces.warm_up(keys)
        bare, found = pieces.look_without_lineage(keys)
        whole, _ = pieces.look(keys)
    finally:
        pieces.spark.stop()
    slots = found.examined
    publish(
        sized("Pieces of a batch"),
        f"The same {events:,} events and the {slots:,} rows they lead to, each piece alone on the"
        " warm machine. Settling and decoding hold the reading. Lineage is filled.",
        table(
            ("piece", "seconds", "a second", "of"),
            [
                ("read from Kafka", read, round(events / read), "events"),
                ("… and settle ranges (state store)", settle, round(events / settle), "events"),
                ("read and decode", decode, round(events / decode), "events"),
                ("look without lineage", bare, round(slots / bare), "rows"),
                ("look with lineage", whole, round(slots / whole), "rows"),
            ],
        ),
    )
    _feed(filled, keys)


def _feed(filled: Filled, keys: Path) -> None:
    command = [sys.executable, "-m", "tests.bench.feeding", str(filled.config), str(keys)]
    ran = subprocess.run([*command, str(FED)], capture_output=True, text=True, check=True)
    *steps, last = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    shown = [step for step in steps if step["keys"] % CHANGES == 0]
    ratio = shown[-1]["rss"] / shown[0]["rss"]
    publish(
        sized("Memory of a Python worker"),
        f"One process runs the workers' own function over {FED:,} keys, lineage filled. Its memory"
        f" grew by a factor of {ratio:.2f} (aim: at most 1.1).",
        table(
            ("keys", "rows", "rows/s", "resident MiB"),
            [
                (step["keys"], step["slots"], round(step["slots"] / step["seconds"]), step["rss"])
                for step in shown
            ],
        ),
        "Where its time goes (waiting for Cassandra included):",
        table(
            ("", "seconds", "µs a row"),
            [
                (name, seconds, seconds / steps[-1]["slots"] * 1e6)
                for name, seconds in sorted(last["spent"].items())
            ],
        ),
    )
    assert ratio <= GROWN_AT_MOST
