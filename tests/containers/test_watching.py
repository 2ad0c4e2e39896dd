"""Alert rules and the dashboard."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.containers

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool on the PATH (Debian: apt-get install prometheus)")
    done = subprocess.run(
        [program, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
    source = ROOT / "streaming" / "metrics.py"
    if not source.exists():
        pytest.skip("streaming.monitoring.metrics is not there yet")
    text = source.read_text("utf-8")
    unknown = {
        name
        for name in names_used()
        if name.removeprefix("reconciler_").removesuffix("_total") not in text
    }
    assert not unknown
