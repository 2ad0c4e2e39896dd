"""The demo's reconciler: its settings are the product's, its processes are found and ended."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from deploy.demo.__main__ import SHIPPED, main, workload_of
from deploy.demo.pace import Pace, pace_of
from deploy.demo.play import days_since
from deploy.demo.stream import Stream, demo_settings
from deploy.embedded.process import processes_of_session
from deploy.embedded.settings_file import Sections, as_toml
from deploy.embedded.spark_cluster import SparkCluster
from deploy.mailserver.attachments import REFERENCES
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.faults import COUNTER_FAULTS, INDEX_FAULTS, MESSAGE_FAULTS, FaultKind
from deploy.mailserver.history import MESSAGES
from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.mailserver.rights import USER_RIGHTS
from deploy.stream_process import metrics_port
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from streaming.settings import load, refuse_unfit_cluster

STACK: Sections = {
    "cassandra": {"hosts": ["127.0.0.1"], "port": 9999, "keyspace": "apache_james"},
    "stream": {"checkpoint_dir": "/elsewhere"},
}


def test_the_settings_are_ones_that_the_product_takes(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(as_toml(demo_settings(STACK, tmp_path, Pace())), encoding="utf-8")
    settings = load(file, {})
    assert (settings.cassandra.port, settings.stream.delay, settings.stream.window) == (9999, 5, 1)
    assert settings.stream.checkpoint_dir == str(tmp_path / "checkpoint")
    assert settings.repair.suspect_share == 1.0
    assert settings.rights.truth == "eventstore"
    assert settings.attachments.tables == ("attachmentmessageid",)
    assert set(settings.repair.projections) == {each.name for each in MESSAGE_PROJECTIONS}


def test_it_runs_on_a_spark_cluster_where_the_settings_say_so(tmp_path: Path) -> None:
    stack, spark = tmp_path / "stack.toml", SparkCluster(tmp_path / "spark").settings_for(SHIPPED)
    stack.write_text(as_toml(STACK), encoding="utf-8")
    settings = load(Stream(stack, tmp_path, Pace(), spark).config, {})
    assert settings.stream.master == spark["stream"]["master"]
    assert settings.stream.checkpoint_dir == str(tmp_path / "checkpoint")
    assert dict(settings.spark)["spark.cores.max"] == "2"
    refuse_unfit_cluster(settings, {})
    with ZipFile(dict(settings.spark)["spark.submit.pyFiles"]) as code:
        assert {name.partition("/")[0] for name in code.namelist()} == set(SHIPPED)


@pytest.mark.parametrize(("start", "delay"), [(1, 5), (20, 5), (60, 15), (1000, 45)])
def test_a_slower_machine_gets_a_longer_delay(start: float, delay: float, tmp_path: Path) -> None:
    pace = pace_of(start)
    assert pace.delay == delay
    sections = demo_settings(STACK, tmp_path, pace)
    assert sections["stream"]["delay"] == sections["tally"]["max_update_lag"] == delay
    assert pace.quiet > 2 * (delay + pace.window)


def test_the_port_is_read_from_the_log() -> None:
    assert metrics_port("starting\n") is None
    assert metrics_port('{"message": "watching x in repair mode; metrics on port 40861"}') == 40861


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_a_process_that_left_its_group_is_found_by_its_session() -> None:
    script = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], process_group=0)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    leader = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert leader.stdout is not None
        child = int(leader.stdout.readline())
        assert sorted(processes_of_session(leader.pid)) == sorted([leader.pid, child])
    finally:
        leader.communicate()  # its closed input ends the child, and so the leader
    assert processes_of_session(leader.pid) == []


def test_the_workload_has_a_hundred_faults_and_all_kinds_in_every_table() -> None:
    for operations in (300, 800, 2000):
        plans = workload_of(operations, seed=1).fault_plans()
        met = {plan.projection: list(plan.faults().values()) for plan in plans}
        assert len(met[MESSAGES]) >= 100
        assert {name: {fault.kind for fault in faults} for name, faults in met.items()} == {
            MESSAGES: set(MESSAGE_FAULTS),
            **{name: set(INDEX_FAULTS) for name in INDEX_PROJECTIONS},
            **{name: set(COUNTER_FAULTS) for name in COUNTER_TABLES},
            USER_RIGHTS: {FaultKind.NOT_SENT, FaultKind.APPLIED_BUT_TIMED_OUT},
            REFERENCES: {FaultKind.NOT_SENT, FaultKind.APPLIED_BUT_TIMED_OUT},
        }
    assert workload_of(800, 1).fault_plans() == workload_of(800, 1).fault_plans()


def test_too_few_operations_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--operations", "10"])
    assert ended.value.code == 2
    assert "at least 300, for 100 faults" in capsys.readouterr().err


def test_a_demo_may_run_through_midnight() -> None:
    now = datetime.now(UTC)
    assert list(days_since(now)) == [now.date()]
    assert next(iter(days_since(now - timedelta(days=1)))) == now.date() - timedelta(days=1)
