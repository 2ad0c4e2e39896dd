"""The metrics for Prometheus. Names and labels are those of deploy/prometheus/alerts.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from reconcilers.words.errors import Misconfigured
from reconcilers.words.waiting import Wait, Waiting
from streaming.settings import MetricsSettings

REPAIR_SECONDS = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 1800, 3600)


Labels = tuple[str, str, str]
UNKNOWN_NODE = "unknown"
"""A label of ``lost_spans``: a loss was proven, but not at which node."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """All metrics of one process, a field for each, in a registry of their own. Times: seconds."""

    registry: CollectorRegistry
    capture_delay: Gauge = field(init=False)
    frontier: Gauge = field(init=False)
    no_memory: Gauge = field(init=False)
    lost_spans: Counter = field(init=False)
    lag_records: Gauge = field(init=False)
    lag_seconds: Gauge = field(init=False)
    window_age: Gauge = field(init=False)
    dropped: Counter = field(init=False)
    batch_duration: Gauge = field(init=False)
    state_rows: Gauge = field(init=False)
    examined: Counter = field(init=False)
    suspects: Counter = field(init=False)
    findings: Counter = field(init=False)
    open_findings: Gauge = field(init=False)
    repairs: Counter = field(init=False)
    time_to_repair: Histogram = field(init=False)
    dead_letters: Counter = field(init=False)
    unresolved: Counter = field(init=False)
    breaker: Gauge = field(init=False)
    clock_skew: Gauge = field(init=False)
    restarts: Counter = field(init=False)
    started: Gauge = field(init=False)
    last_batch: Gauge = field(init=False)
    paused: Gauge = field(init=False)
    agent_up: Gauge = field(init=False)
    tally_looks: Counter = field(init=False)
    tally_waiting: Gauge = field(init=False)
    tally_turn: Gauge = field(init=False)
    tally_restarts: Counter = field(init=False)
    sweep_faults: Counter = field(init=False)
    _shown: dict[str, set[Labels]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make each metric."""
        for name, kind, metric, help_text, labels in _DECLARED:
            make = partial(kind, buckets=REPAIR_SECONDS) if kind is Histogram else kind
            made = make(f"reconciler_{metric}", help_text, labels, registry=self.registry)
            object.__setattr__(self, name, made)
        self.lost_spans.labels(UNKNOWN_NODE)  # so that the first loss is an increase

    def show_open(self, owner: str, counts: Mapping[Labels, int]) -> None:
        """Show one owner's open findings by projection, kind and state; those of others stay."""
        for gone in self._shown.get(owner, set()) - counts.keys():
            self.open_findings.remove(*gone)
        for labels, number in counts.items():
            self.open_findings.labels(*labels).set(number)
        self._shown[owner] = set(counts)

    def show_wait(self, wait: Wait, waiting: Waiting | None) -> None:
        """Show whether this reason holds repairs back now."""
        self.paused.labels(wait).set(waiting is not None)


_DECLARED: tuple[tuple[str, Any, str, str, tuple[str, ...]], ...] = (
    ("capture_delay", Gauge, "capture_delay_seconds", "Age of a canary when read", ("node",)),
    ("frontier", Gauge, "frontier_timestamp_seconds", "Written before it: all looked at", ()),
    ("no_memory", Gauge, "memory_not_begun", "1 while it has not, for this reason", ("reason",)),
    ("lost_spans", Counter, "lost_spans", "Times that events of a node may be lost", ("node",)),
    ("lag_records", Gauge, "kafka_lag_records", "Records not read yet", ("topic", "partition")),
    (
        *("lag_seconds", Gauge, "kafka_lag_seconds", "Age of the oldest record not read yet"),
        ("topic", "partition"),
    ),
    ("window_age", Gauge, "window_age_seconds", "Age of the oldest write of the last window", ()),
    ("dropped", Counter, "rows_dropped_by_watermark", "Rows lost to a clock step; fresh start", ()),
    ("batch_duration", Gauge, "batch_duration_seconds", "Duration of the last batch", ()),
    ("state_rows", Gauge, "state_rows", "Ranges of offsets that wait for their delay", ()),
    ("examined", Counter, "keys_examined", "Slots compared", ("family",)),
    ("suspects", Counter, "suspects", "Slots read again, truth at SERIAL", ("family",)),
    ("findings", Counter, "findings", "Findings", ("projection", "kind", "state")),
    ("open_findings", Gauge, "open_findings", "Now open", ("projection", "kind", "state")),
    ("repairs", Counter, "repairs", "Repairs by outcome", ("projection", "outcome")),
    ("time_to_repair", Histogram, "time_to_repair_seconds", "From oldest write to repair", ()),
    ("dead_letters", Counter, "dead_letters", "Records kept undecoded", ("reason",)),
    ("unresolved", Counter, "unresolved_keys", "Deleted rows whose message is not known", ()),
    ("breaker", Gauge, "breaker_open", "1 while this breaker is open", ("breaker",)),
    ("clock_skew", Gauge, "clock_skew_seconds", "A clock against ours", ("source",)),
    ("restarts", Counter, "query_restarts", "Times a dead query was restarted", ("family",)),
    ("started", Gauge, "started_timestamp_seconds", "When this process began", ()),
    ("last_batch", Gauge, "last_batch_timestamp_seconds", "When it ended", ("family",)),
    ("paused", Gauge, "repairs_paused", "1 while this holds repairs back", ("reason",)),
    ("agent_up", Gauge, "agent_up", "1 while this agent says that it is well", ("agent",)),
    ("tally_looks", Counter, "tally_looks", "Looks at counters", ("tally", "outcome")),
    ("tally_waiting", Gauge, "tallies_waiting", "Counters that are due to be looked at", ()),
    ("tally_turn", Gauge, "tally_turn_timestamp_seconds", "When the counting thread lived", ()),
    ("tally_restarts", Counter, "tally_restarts", "Times that counting restarted", ()),
    ("sweep_faults", Counter, "sweep_faults", "Sweeps of the stream that a defect ended", ()),
)


def serve(metrics: Metrics, settings: MetricsSettings) -> int:
    """Serve the metrics over HTTP. Returns the port. Raises `Misconfigured` if it is taken."""
    try:
        server, _thread = start_http_server(
            settings.port, addr=settings.host, registry=metrics.registry
        )
    except OSError as taken:
        raise Misconfigured(
            f"cannot serve metrics on {settings.host}:{settings.port}: {taken.strerror};"
            " set metrics.port"
        ) from taken
    return int(server.server_port)
