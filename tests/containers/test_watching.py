"""Alert rules and the dashboard."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy import alerts_table, promtool
from reconcilers.rows.nines import KnownShare
from reconcilers.rows.sample import COUNTED

pytestmark = pytest.mark.containers

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
LOOKS = "reconciler_sampled_looks_total"


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
    promtool_says(list(arguments), PROMETHEUS)


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


def test_every_query_of_the_dashboard_is_one(tmp_path: Path) -> None:
    rules = [{"record": "a", "expr": inserted(each)} for each in queries().values()]
    (tmp_path / "rules.yml").write_text(
        json.dumps({"groups": [{"name": str(n), "rules": [each]} for n, each in enumerate(rules)]})
    )
    assert len(rules) > 40
    promtool_says(["check", "rules", "rules.yml"], tmp_path)


@pytest.mark.parametrize("numbers", [(90, 3, 7), (100, 0, 0), (0, 0, 100), (5, 1, 0)])
def test_the_dashboards_bounds_are_those_of_the_status(
    numbers: tuple[int, int, int], tmp_path: Path
) -> None:
    """The looks of an hour; Prometheus computes what `KnownShare` does."""
    series = [
        {
            "series": f'{LOOKS}{{instance="a",system="messages",age="600",outcome="{outcome}"}}',
            "values": f"0+{number}x120",
        }
        for outcome, number in zip(COUNTED, numbers, strict=True)
    ]
    bounds = KnownShare(*(60 * each for each in numbers)).interval()
    asked = [
        {
            "expr": f"abs({inserted(queries()[name])} - {bound!r}) < bool 0.0001",
            "eval_time": "120m",
            "exp_samples": [{"labels": '{system="messages"}', "value": 1}],
        }
        for name, bound in zip(("at least", "at most"), (bounds.low, bounds.high), strict=True)
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": asked}
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [], "tests": [test]}))
    promtool_says(["test", "rules", "test.yml"], tmp_path)


def queries() -> dict[str, str]:
    """All queries of the dashboard by their number, and the bounds of a share by their names."""
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    targets = [each for panel in panels for each in panel.get("targets", ())]
    found = {str(number): each["expr"] for number, each in enumerate(targets)}
    for each in targets:
        name = each["legendFormat"].removeprefix("{{system}}, ")
        if name in ("at least", "at most"):
            found[name] = each["expr"]
    return found


def inserted(query: str) -> str:
    """The query as Grafana sends it."""
    for name, value in {"rate_interval": "5m", "range": "1h"}.items():
        query = query.replace(f"$__{name}", value)
    return re.sub(r"\$\w+", ".*", query)


def promtool_says(arguments: list[str], folder: Path) -> None:
    """Run it in this folder; it must agree."""
    command = [str(promtool_or_skip()), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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
