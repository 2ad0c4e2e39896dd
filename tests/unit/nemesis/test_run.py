"""A run without servers: how faults are injected, how agreement is awaited, what is kept."""

import json
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.samples import Sample

from deploy.embedded import interrupts
from deploy.embedded.errors import StartError
from deploy.embedded.spark_cluster import SparkCluster
from deploy.nemesis import __main__ as command_line
from deploy.nemesis import agreement, hosts
from deploy.nemesis.agreement import await_agreement, bound_s, is_received
from deploy.nemesis.clocks import CLOCK_FAULTS
from deploy.nemesis.injector import Injector
from deploy.nemesis.plan import RunKind, RunPlan
from deploy.nemesis.record import RunRecord, first_line
from deploy.nemesis.run import acknowledged, inject, spark_cluster
from deploy.nemesis.schedule import FaultChoice, InjectedFault, PlannedFault
from deploy.nemesis.verdict import Judgement, Violation, ViolationName
from tests.unit.nemesis.scene import NemesisScene

KILL, PAUSE = InjectedFault.KILL_NODE, InjectedFault.PAUSE_BROKER
ROW = Violation(ViolationName.NOT_CONVERGED, "messageidtable", ("a", 1), "modseq", {})
DELAY_S = 10
ROWS_BOUND_S, COUNTERS_BOUND_S = 108, 660
COUNTER = Violation(ViolationName.NOT_CONVERGED, "mailboxcounters", ("a",), "count", {})
RUN = RunRecord(3, "5.0", "2026-11-28T01:02:03+00:00", 60, 300, {"node killed": 1}, {}, 0, 41.0)


def choices(told: list[str]) -> dict[FaultChoice, Injector]:
    return {
        FaultChoice(kind, "it", kind): Injector(
            partial(told.append, f"+{kind}"), partial(told.append, f"-{kind}")
        )
        for kind in (KILL, PAUSE)
    }


def test_faults_of_a_round_overlap_and_rounds_do_not() -> None:
    told: list[str] = []
    faults = [
        PlannedFault(1, 0.0, KILL, "it", 0.4),
        PlannedFault(1, 0.1, PAUSE, "it", 0.1),
        PlannedFault(2, 0.3, PAUSE, "it", 0.0),
    ]
    assert inject(faults, choices(told)) == {KILL: 1, PAUSE: 2}
    assert told == [f"+{KILL}", f"+{PAUSE}", f"-{PAUSE}", f"-{KILL}", f"+{PAUSE}", f"-{PAUSE}"]


def test_what_cannot_be_healed_ends_the_run() -> None:
    def fail() -> None:
        raise StartError("it does not answer")

    possible = {FaultChoice(KILL, "it", "cluster"): Injector(lambda: None, fail)}
    with pytest.raises(StartError, match="does not answer"):
        inject([PlannedFault(1, 0.0, KILL, "it", 0.0)], possible)


def test_a_plan_fits_its_length() -> None:
    plan = RunPlan(seed=1, minutes=5, release="5.0", rate=20.0)
    faults = plan.faults([FaultChoice(kind, "it", kind) for kind in InjectedFault])
    assert faults
    assert max(each.end_s for each in faults) < 300
    assert plan.workload().operations == 6000
    plan.workload().fault_plans()
    assert InjectedFault.UPGRADE not in {each.kind for each in faults}
    assert (plan.delay_s, plan.shift_s, plan.releases) == (10, 2, "5.0")


def test_clocks_are_wrong_by_more_than_half_the_delay() -> None:
    plan = RunPlan(seed=1, minutes=10, release="5.0", rate=20.0, kind=RunKind.CLOCKS)
    faults = plan.faults([FaultChoice(kind, "it", kind) for kind in InjectedFault])
    assert {each.kind for each in faults} == set(CLOCK_FAULTS)
    assert plan.delay_s / 2 < plan.shift_s < plan.delay_s


def test_an_upgrade_takes_one_node_after_the_other() -> None:
    plan = RunPlan(seed=1, minutes=10, release="4.1", rate=20.0, kind=RunKind.UPGRADE)
    hosts = ("127.0.0.1", "127.0.0.2")
    upgrades = [FaultChoice(InjectedFault.UPGRADE, each, "cluster") for each in hosts]
    faults = plan.faults([FaultChoice(KILL, "it", "it"), *upgrades])
    assert [(each.round, each.at_s, each.target) for each in faults] == [
        (1, 20.0, "127.0.0.1"),
        (2, 80.0, "127.0.0.2"),
    ]
    assert plan.releases == "4.1 to 5.0"


def test_a_run_on_executors_has_all_faults_but_upgrades() -> None:
    usual = RunPlan(seed=1, minutes=24, release="5.0", rate=20.0)
    plan = replace(usual, kind=RunKind.EXECUTORS)
    choices = [FaultChoice(kind, "it", kind) for kind in InjectedFault]
    assert plan.faults(choices) == usual.faults(choices)
    assert (plan.on_executors, usual.on_executors) == (True, False)


def test_a_cluster_is_of_the_streams_host_and_ends_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    for what in ("start", "stop", "precede"):
        note = partial(told.append, what)
        monkeypatch.setattr(SparkCluster, what, lambda _, *words, note=note: note(*words[1:]))
    plan = RunPlan(1, 1.0, "5.0", 1.0)
    with spark_cluster(plan, tmp_path / "none") as none:
        assert none is None
    with spark_cluster(replace(plan, kind=RunKind.EXECUTORS), tmp_path / "spark") as made:
        assert isinstance(made, SparkCluster)
        assert told == ["precede", "start"]
    assert told == ["precede", "start", "stop"]


def test_counters_may_take_longer_than_rows() -> None:
    assert bound_s(Judgement([ROW, COUNTER]), DELAY_S) == ROWS_BOUND_S
    assert bound_s(Judgement([COUNTER]), DELAY_S) == COUNTERS_BOUND_S
    assert bound_s(Judgement([]), 5) < COUNTERS_BOUND_S


def sample(name: str, value: float, **labels: str) -> Sample:
    return Sample(f"reconciler_{name}", labels, value)


GOOD = [
    *(sample("capture_delay_seconds", 2.0, node=node) for node in "abc"),
    sample("frontier_timestamp_seconds", 100.0),
    sample("sweep_due", 0.0, family="message"),
]


def test_all_is_received_when_each_node_is_prompt_and_no_sweep_is_due() -> None:
    assert is_received(GOOD, 3, 99.0, DELAY_S)
    assert not is_received(GOOD, 3, 100.0, DELAY_S)
    assert not is_received(GOOD[1:], 3, 99.0, DELAY_S)
    assert not is_received(GOOD[:3], 3, 99.0, DELAY_S)
    assert not is_received([], 3, 99.0, DELAY_S)
    late = sample("capture_delay_seconds", 90.0, node="d")
    assert not is_received([*GOOD, late], 3, 99.0, DELAY_S)
    assert not is_received([*GOOD, sample("sweep_due", 1.0, family="rights")], 3, 99.0, DELAY_S)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A second passes at each look."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def agreed(monkeypatch: pytest.MonkeyPatch, wrong_until: float, *wrong: Violation) -> Any:
    """What comes of it where something is wrong until a time (s)."""

    def judged(*_: object) -> Judgement:
        return Judgement(list(wrong) if time.monotonic() < wrong_until else [])

    monkeypatch.setattr(agreement, "judged", judged)
    monkeypatch.setattr(agreement, "is_received", lambda *_: True)
    stack = SimpleNamespace(missing=list, agent_answers=lambda: True, nodes=[1, 2, 3], keyspace="")
    stream = SimpleNamespace(samples=list, delay_s=DELAY_S)
    return await_agreement(stack, stream, None, [], {}, 2)  # type: ignore[arg-type]


def test_rows_agree_within_their_bound_and_counters_within_theirs(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    found = agreed(monkeypatch, 40.0, ROW)
    assert (found.after_s, found.judgement.violations) == (40.0, [])
    for wrong, longest_s in (((ROW,), ROWS_BOUND_S), ((COUNTER,), COUNTERS_BOUND_S)):
        clock[0] = 0.0
        assert agreed(monkeypatch, longest_s - 10.0, *wrong).after_s is not None
        clock[0] = 0.0
        found = agreed(monkeypatch, longest_s + 20.0, *wrong)
        assert (found.after_s, found.judgement.violations) == (None, list(wrong))
    clock[0] = 0.0
    assert agreed(monkeypatch, COUNTERS_BOUND_S, COUNTER, ROW).after_s is None


def test_operations_are_counted_by_their_truth(tmp_path: Path) -> None:
    scene = NemesisScene(tmp_path)
    scene.message()
    writes = scene.writes()
    assert acknowledged(writes, ("imapuidtable", "mailbox")) == 2
    assert acknowledged(writes) == len(writes) > 5


def test_a_record_is_kept_and_the_page_made(tmp_path: Path) -> None:
    records, page = tmp_path / "nemesis", tmp_path / "nemesis.md"
    command_line.keep(RUN, records)
    [file] = records.iterdir()
    assert file.name == "2026-11-28T010203-5.0-seed-3.json"
    assert json.loads(file.read_text())["operations"] == 60
    assert first_line(RUN) in page.read_text()


@pytest.mark.parametrize(
    ("played", "code"),
    [(StartError("Java 17 is needed"), 2), (KeyboardInterrupt(), 130), (RUN, 0)],
)
def test_how_a_run_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    played: Any,
    code: int,
) -> None:
    def play(*_: object) -> Any:
        if isinstance(played, BaseException):
            raise played
        return played, Judgement()

    monkeypatch.setattr(command_line, "play", play)
    monkeypatch.setenv(hosts.OUTSIDE, "net:[another]")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(command_line, "keep", lambda *_: None)
    monkeypatch.setattr(interrupts, "raise_once", lambda: None)
    assert command_line.main(["--seed", "3"]) == code
    out, err = capsys.readouterr()
    if code == 2:
        assert err.splitlines()[-2:][0] == "nemesis: the run could not be made: Java 17 is needed"
    if code == 0:
        assert out == f"{first_line(RUN)}\n"
