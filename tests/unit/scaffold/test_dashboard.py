"""The dashboard, and all queries of alerts and panels against what is exported."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Metric

from deploy import alerts_table
from streaming.monitoring.metrics import Metrics

ROOT = Path(__file__).resolve().parents[3]
CDC_SPACE = ROOT / "deploy" / "agent" / "cdc_space.sh"
DASHBOARD: dict[str, Any] = json.loads(
    (ROOT / "deploy" / "grafana" / "dashboard.json").read_text("utf-8")
)
PANELS = [each for each in DASHBOARD["panels"] if each["type"] != "row"]
ALERTS = {each["alert"]: each for each in alerts_table.rules()}
OF_NODES = set(re.findall(r"^reconciler_\w+", CDC_SPACE.read_text("utf-8"), re.MULTILINE))
OF_ALL = ("instance", "job", "le")
OF_PROMETHEUS = {"up": {"job"}, "ALERTS": {"alertname", "alertstate", "severity"}}


def asked(panel: Mapping[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


QUERIES = [
    *(each["expr"] for each in ALERTS.values()),
    *(query for panel in PANELS for query in asked(panel)),
]


def selectors(query: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Each metric in a query, with its matchers: label, operator, value."""
    for name, matchers in re.findall(r"\b(reconciler_\w+|up|ALERTS)\b(?:\{([^}]*)\})?", query):
        yield name, re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers)


def names(query: str) -> set[str]:
    return {name for name, _ in selectors(query)}


class Exported:
    """The names, labels and first values of a stream's registry."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        self.labels = {
            series: {*getattr(collector, "_labelnames", ()), *OF_ALL}
            for collector in registry._collector_to_names
            for family in collector.collect()
            for series in _series(family)
        }
        self.values: dict[tuple[str, str], set[str]] = {}
        for family in metrics.registry.collect():
            for sample in family.samples:
                for label, value in sample.labels.items():
                    self.values.setdefault((sample.name, label), set()).add(value)


def _series(family: Metric) -> set[str]:
    """What a family is asked for by: a counter's total, a histogram's parts."""
    if family.type == "histogram":
        return {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
    return {family.name + ("_total" if family.type == "counter" else "")}


EXPORTED = Exported()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_what_is_exported(query: str) -> None:
    for name, matchers in selectors(query):
        if name not in OF_NODES | OF_PROMETHEUS.keys():
            assert name in EXPORTED.labels
            for label, operator, value in matchers:
                assert label in EXPORTED.labels[name], f"{name} has no label {label}"
                first = EXPORTED.values.get((name, label), set())
                if first and operator in ("=", "=~") and "$" not in value:
                    assert all(each in first for each in value.split("|")), (name, label, value)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_groups_by_labels_that_are_there(query: str) -> None:
    known = {"instance"}
    for name in names(query):
        known |= OF_PROMETHEUS.get(name) or EXPORTED.labels.get(name, set())
    for grouped in re.findall(r"\b(?:by|on|without) \(([^)]*)\)", query):
        assert {each.strip() for each in grouped.split(",") if each.strip()} <= known


def test_each_metric_of_the_sampler_is_asked_for_as_it_is_counted() -> None:
    """The check of values is no check if the metric has none at the start."""
    assert EXPORTED.values["reconciler_sampled_looks_total", "age"] == {"10", "60", "600"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert asked(panel)
    assert all(asked(panel))
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references)


def test_panels_do_not_overlap_and_have_their_own_names() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    for name in ("id", "title"):
        assert max(Counter(panel[name] for panel in DASHBOARD["panels"]).values()) == 1


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_has_a_panel_that_shows_its_metric_and_leads_to_the_runbook(alert: str) -> None:
    rule = ALERTS[alert]
    shown = [
        (link["url"], panel)
        for panel in PANELS
        for link in panel.get("links", ())
        if link["title"] == alert
    ]
    assert shown
    for url, panel in shown:
        assert url == rule["annotations"]["runbook_url"]
        assert names(rule["expr"]) & {name for query in asked(panel) for name in names(query)}


def test_panels_link_to_no_alert_that_is_not_there() -> None:
    linked = {link["title"] for panel in PANELS for link in panel.get("links", ())}
    assert linked == ALERTS.keys()


def test_a_keyspace_and_its_instances_can_be_chosen() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"source", "keyspace", "instance"}
    assert variables["keyspace"]["definition"] == "label_values(reconciler_info, keyspace)"
    of_keyspace = 'label_values(reconciler_info{keyspace=~"$keyspace"}, instance)'
    assert variables["instance"]["definition"] == of_keyspace
    for variable in (variables["keyspace"], variables["instance"]):
        assert variable["query"]["query"] == variable["definition"]
        assert variable["multi"]
        assert variable["includeAll"]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_the_chosen_instances_only(panel: dict[str, Any]) -> None:
    """Nodes of Cassandra and Prometheus's own alerts have other instances, or none."""
    for query in asked(panel):
        for name, matchers in selectors(query):
            if name not in OF_NODES | {"ALERTS"}:
                assert ("instance", "=~", "$instance") in matchers, query
            if name == "reconciler_info":
                assert ("keyspace", "=~", "$keyspace") in matchers
