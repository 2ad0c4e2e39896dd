"""Alert rules and the dashboard."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, Metric

from deploy import alerts_table, promtool
from streaming.monitoring.metrics import Metrics

pytestmark = pytest.mark.containers

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
CDC_SPACE = ROOT / "deploy" / "agent" / "cdc_space.sh"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"


def promtool_or_skip() -> Path:
    """The program; without it a test is skipped, and fails where continuous integration runs it."""
    program = promtool.found()
    if program is not None:
        return program
    told = "no promtool: install Debian's package prometheus, or run `make servers`"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
        ("test", "rules", "alerts_of_days_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    command = [str(promtool_or_skip()), *arguments]
    done = subprocess.run(command, cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ci", "ends"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_without_promtool_a_test_is_skipped_but_fails_in_continuous_integration(
    ci: str, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promtool, "found", lambda: None)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(ends, match="no promtool"):
        promtool_or_skip()


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return loaded


def test_panels_do_not_overlap_and_each_asks_something() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or all(target["expr"] for target in panel["targets"])


def names_used() -> set[str]:
    texts = (PROMETHEUS / "alerts.yml").read_text("utf-8") + DASHBOARD.read_text("utf-8")
    return {name.removesuffix("_bucket") for name in re.findall(r"\breconciler_\w+", texts)}


def test_every_metric_asked_for_is_exported() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    exported = {name for family in registry.collect() for name in (family.name, *_series(family))}
    of_nodes = set(re.findall(r"^reconciler_\w+", CDC_SPACE.read_text("utf-8"), re.MULTILINE))
    assert names_used() <= exported | of_nodes


def _series(family: Metric) -> set[str]:
    """What a family is asked for by: a counter's total, a histogram's parts."""
    suffixes = {"counter": ("_total",), "histogram": ("_count", "_sum")}
    return {family.name + suffix for suffix in suffixes.get(family.type, ())}


def test_every_alert_is_silent_in_health_and_has_a_test_that_raises_it() -> None:
    alerts = {alert["alert"] for alert in alerts_table.rules()}
    files = [PROMETHEUS / name for name in ("alerts_test.yml", "alerts_of_days_test.yml")]
    in_health, *tests = [
        test for file in files for test in yaml.safe_load(file.read_text("utf-8"))["tests"]
    ]
    assert {each["alertname"] for each in in_health["alert_rule_test"]} == alerts
    fired = {
        found
        for test in tests
        for asked in test.get("promql_expr_test", ())
        for sample in asked["exp_samples"]
        for found in re.findall(r'alertname="(\w+)"', sample["labels"])
    }
    assert fired == alerts
