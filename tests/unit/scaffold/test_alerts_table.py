"""The alert rules say all that a person needs, and the runbook's table is made from them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deploy import alerts_table

ALERTS = alerts_table.rules()
RUNBOOK = alerts_table.RUNBOOK.read_text("utf-8")
BASE = "https://example.org/reconciler/runbook.md#"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_how_urgent_it_is_what_it_means_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["alert"].startswith("Reconciler")
    assert alert["labels"] == {"severity": alert["labels"]["severity"]}
    assert alert["labels"]["severity"] in alerts_table.SEVERITIES
    told = alert["annotations"]
    assert told.keys() == {"summary", "description", "action", "runbook_url"}
    assert "{{" not in told["description"] + told["action"]  # they stand in the runbook


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_its_runbook_url_leads_to_its_section(alert: dict[str, Any]) -> None:
    """The links of the table are checked with all others."""
    url, name = alert["annotations"]["runbook_url"], alert["alert"]
    assert url.startswith(BASE)
    assert name.lower() in url.removeprefix(BASE).split("-")
    heading = rf"^## (\w+, )*{name}(, \w+)*$"
    assert len(re.findall(heading, RUNBOOK, re.MULTILINE)) == 1


def test_the_runbook_has_the_table_of_the_rules() -> None:
    assert alerts_table.rewritten(RUNBOOK, ALERTS) == RUNBOOK, "run `make docs`"


def test_the_table_shows_each_alert_the_critical_ones_first() -> None:
    changed = [*ALERTS, {**ALERTS[0], "alert": "ReconcilerNew"}]
    rows = [
        line.split(" | ")
        for line in alerts_table.rewritten(RUNBOOK, changed).splitlines()
        if line.startswith("| [")
    ]
    assert len(rows) == len(ALERTS) + 1
    severities = [row[1] for row in rows]
    assert severities == sorted(severities, key=alerts_table.SEVERITIES.index)
    assert sum(row[0].startswith("| [ReconcilerNew](#reconcilerdown") for row in rows) == 1
