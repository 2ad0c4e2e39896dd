"""The metrics of a process: what is there from the start, and what is not there yet."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from unittest.mock import Mock
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from checkpoints.losses import Cause, Loss
from reconcilers.declared.families import FAMILIES
from reconcilers.words.errors import Misconfigured
from streaming.commands.wiring import counter_loop, driver, opened_stream
from streaming.monitoring.endpoint import Port, serve, served
from streaming.monitoring.losses import CountedLosses
from streaming.monitoring.memory import MemoryCollector
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.version import version
from streaming.settings import MetricsSettings
from tests.builders.failing import unreachable
from tests.builders.rows import FAMILY
from tests.fakes.checkpoints.losses import MemoryLosses

ALERTS = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "alerts.yml"
NAMED_AT_THE_FIRST = {"reconciler_dead_letters_total"}
"""Nobody knows the reasons before: the alert looks for a series that is new."""


def scraped(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """A scrape: the value of each sample by its name and labels."""
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_each_counter_of_an_alert_is_0_at_the_first_scrape(metrics: Metrics) -> None:
    """Else its first loss is no increase: the series would begin with 1."""
    counters = set(re.findall(r"\breconciler_\w+_total\b", ALERTS.read_text("utf-8")))
    first = scraped(metrics)
    there = {name for name, _ in first}
    assert counters - there == NAMED_AT_THE_FIRST
    for cause in Cause:
        assert first["reconciler_losses_total", frozenset({("why", cause.value)})] == 0
    for tally in (each.name for family in FAMILIES for each in family.tallies):
        labels = frozenset({("tally", tally), ("outcome", "agrees")})
        assert first["reconciler_tally_looks_total", labels] == 0
    restarts = frozenset({("family", FAMILIES[0].name)})
    assert first["reconciler_query_restarts_total", restarts] == 0


def test_a_second_scrape_has_the_same_series_and_the_increase(metrics: Metrics) -> None:
    first = scraped(metrics)
    CountedLosses(MemoryLosses(), metrics).record(Loss(1, "95 s", Cause.CANARIES))
    second = scraped(metrics)
    assert second.keys() == first.keys()
    ours = {name: value - first[name] for name, value in second.items() if "losses" in name[0]}
    assert sum(ours.values()) == 1
    assert ours["reconciler_losses_total", frozenset({("why", "canaries")})] == 1


@pytest.mark.parametrize("cause", Cause)
def test_a_loss_is_counted_when_it_is_recorded(metrics: Metrics, cause: Cause) -> None:
    losses = CountedLosses(MemoryLosses(), metrics)
    loss = Loss(1, "why", cause)
    losses.record(loss)
    assert losses.since(0) == (loss,)
    assert metrics.registry.get_sample_value("reconciler_losses_total", {"why": cause}) == 1


def test_a_loss_that_was_not_recorded_is_not_counted(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = CountedLosses(MemoryLosses(), metrics)
    monkeypatch.setattr(MemoryLosses, "record", unreachable)
    with pytest.raises(Exception, match="no host"):
        losses.record(Loss(1, "why", Cause.COUNT))
    assert metrics.registry.get_sample_value("reconciler_losses_total", {"why": "count"}) == 0


def test_counting_and_lineage_of_a_stream_record_their_losses_with_the_count(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = MemoryLosses()
    monkeypatch.setattr(opened_stream, "CassandraLosses", lambda _store: stored)
    monkeypatch.setattr(driver, "canaries", Mock())
    job = Mock(family=FAMILY)
    job.connections().lineage.watching.return_value = None
    opened = opened_stream.OpenedStream(job, Mock(), Mock(), Mock(), (), None, metrics)
    counter_loop._lost(opened, "events were lost: chunk 3")
    driver._memory(opened).lost(1, "95 s")
    assert [each.why for each in stored.since(0)] == ["events were lost: chunk 3", "95 s"]
    counted = metrics.registry.get_sample_value
    for cause in (Cause.COUNT, Cause.CANARIES):
        assert counted("reconciler_losses_total", {"why": cause}) == 1


def test_a_process_says_for_whom_it_runs_how_and_since_when(metrics: Metrics) -> None:
    assert not [name for name, _ in scraped(metrics) if name == "reconciler_info"]
    metrics.begin("apache_james", "observe")
    labels = {"keyspace": "apache_james", "mode": "observe", "version": version()}
    assert metrics.registry.get_sample_value("reconciler_info", labels) == 1
    started = metrics.registry.get_sample_value("reconciler_started_timestamp_seconds")
    assert started is not None
    assert started > 1_700_000_000


def test_a_frontier_is_not_exported_before_there_is_one(metrics: Metrics) -> None:
    name = "reconciler_frontier_timestamp_seconds"
    assert metrics.registry.get_sample_value(name) is None
    metrics.frontier.set(12.5)
    assert metrics.registry.get_sample_value(name) == 12.5


def test_no_series_says_when_another_was_created(metrics: Metrics) -> None:
    metrics.examined.labels("message").inc()
    assert not [name for name, _ in scraped(metrics) if name.endswith("_created")]


def test_the_process_itself_is_measured(metrics: Metrics) -> None:
    found = {name: value for (name, labels), value in scraped(metrics).items() if not labels}
    for name in ("process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"):
        assert found[name] > 0
    assert 0 < found["reconciler_memory_bytes"] < found["reconciler_memory_limit_bytes"]


def fetched(port: int) -> str:
    """The text of an endpoint on this host."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("mode", ["canary", "sweep"])
def test_canaries_and_a_sweep_serve_metrics_too(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    ports = MetricsSettings(port=1, canary_port=0, sweep_port=0)
    name: Port = "canary_port" if mode == "canary" else "sweep_port"
    with caplog.at_level(logging.INFO, "reconciler"):
        served(ports, name, "apache_james", mode)
    text = fetched(int(caplog.messages[-1].rpartition(" ")[2]))
    labels = f'keyspace="apache_james",mode="{mode}",version="{version()}"'
    assert f"reconciler_info{{{labels}}} 1.0" in text
    assert "process_resident_memory_bytes " in text


def test_a_taken_port_ends_a_stream_and_no_command(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    taken = serve(metrics, MetricsSettings(port=0))
    ports = MetricsSettings(port=taken, canary_port=taken)
    with pytest.raises(Misconfigured, match=r"set metrics\.port"):
        serve(metrics, ports)
    served(ports, "canary_port", "apache_james", "canary")
    assert "set metrics.canary_port" in caplog.text


# --- memory ---------------------------------------------------------------------------------------


def process(root: Path, pid: int, parent: int, kib: int) -> None:
    """A process as Linux shows it; its name has a space and a bracket."""
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a ) b) S {parent} 0 0\n", encoding="ascii")
    (folder / "status").write_text(f"Name:\ta\nRssAnon:\t{kib} kB\n", encoding="ascii")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine of 1,000 KiB: process 10 with a child and a grandchild, and another one."""
    for pid, parent, kib in ((10, 1, 100), (11, 10, 200), (12, 11, 5), (20, 1, 400)):
        process(tmp_path, pid, parent, kib)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 1000 kB\n", encoding="ascii")
    return tmp_path


def memory(root: Path) -> dict[str, float]:
    """What is exported of process 10, in KiB."""
    found = MemoryCollector(root, 10).collect()
    return {sample.name: sample.value / 1024 for each in found for sample in each.samples}


def test_memory_is_that_of_the_process_with_all_its_descendants(root: Path) -> None:
    assert memory(root) == {"reconciler_memory_bytes": 305, "reconciler_memory_limit_bytes": 1000}


def test_without_its_numbers_no_memory_is_exported(tmp_path: Path) -> None:
    assert memory(tmp_path) == {}


@pytest.mark.parametrize(
    ("cgroup", "files", "limit"),
    [
        ("0::/", {"memory.max": "512000"}, 500),
        ("0::/", {"memory.max": "max"}, 1000),
        ("0::/a/b", {"a/memory.max": "102400", "a/b/memory.max": "max"}, 100),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "204800"}, 200),
        ("4:memory:/a", {"memory/memory.limit_in_bytes": "9223372036854771712"}, 1000),
    ],
)
def test_the_limit_is_the_smallest_of_its_groups_and_the_machine(
    root: Path, cgroup: str, files: dict[str, str], limit: int
) -> None:
    (root / "proc" / "self").mkdir()
    (root / "proc" / "self" / "cgroup").write_text(f"1:name=systemd:/x\n{cgroup}\n", "ascii")
    for name, value in files.items():
        file = root / "sys" / "fs" / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="ascii")
    assert memory(root)["reconciler_memory_limit_bytes"] == limit
