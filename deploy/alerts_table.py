"""The table of alerts in deploy/runbook.md, from the alert rules: `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).with_name("prometheus") / "alerts.yml"
RUNBOOK = Path(__file__).with_name("runbook.md")
BEGIN = "<!-- Made by `make docs` from deploy/prometheus/alerts.yml: -->\n"
END = "<!-- (up to here) -->\n"
SEVERITIES = ("critical", "warning")
"""In the order of the table."""


def rules() -> list[dict[str, Any]]:
    """All alert rules, in the order of their file."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rewritten(text: str, alerts: Iterable[dict[str, Any]]) -> str:
    """The page with the table of these alerts between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{''.join(_table(list(alerts)))}{END}{after}"


def _table(alerts: list[dict[str, Any]]) -> Iterator[str]:
    yield "| alert | severity | meaning | what to do |\n"
    yield "|---|---|---|---|\n"
    for alert in sorted(alerts, key=lambda each: SEVERITIES.index(each["labels"]["severity"])):
        told = alert["annotations"]
        name = f"[{alert['alert']}](#{told['runbook_url'].partition('#')[2]})"
        cells = (name, alert["labels"]["severity"], told["description"], told["action"])
        yield f"| {' | '.join(each.replace('|', '&#124;') for each in cells)} |\n"


if __name__ == "__main__":
    page = RUNBOOK.read_text(encoding="utf-8")
    RUNBOOK.write_text(rewritten(page, rules()), encoding="utf-8")
