"""The metrics for Prometheus. Names and labels are those of deploy/prometheus/alerts.yml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from checkpoints.clock import now_micros, to_seconds
from checkpoints.losses import Cause
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.sample import AGES, COUNTED, age_label
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.memory import MemoryCollector
from streaming.monitoring.version import version

BUCKETS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 1800, 3600)
"""Upper bounds (s) of both histograms."""
JUDGED = frozenset({"agrees", "unsure", "wrong"})
"""Outcomes of observations that were judged; all others are void."""

Labels = tuple[str, str, str]


class LateGauge(Collector):
    """A gauge without labels that is not exported before it has a value."""

    def __init__(
        self, name: str, told: str, _labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._told = name, told
        self._value: float | None = None
        registry.register(self)

    def set(self, value: float) -> None:
        """Export this value from now on."""
        self._value = value

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The value, if there is one."""
        yield GaugeMetricFamily(self._name, self._told, value=self._value)


class AgeGauge(Collector):
    """A gauge without labels: the seconds since the earliest of some times; 0 without any.

    They are counted at each scrape.
    """

    def __init__(
        self, name: str, told: str, _labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._told = name, told
        self._since: dict[str, Micros] = {}
        registry.register(self)

    def begin(self, of: str, since: Micros | None) -> None:
        """Count what is called so from this time (µs, our clock), or not at all."""
        self._since = {name: at for name, at in self._since.items() if name != of}
        if since is not None:
            self._since = {**self._since, of: since}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The age now."""
        oldest = min(self._since.values(), default=None)
        age = 0.0 if oldest is None else max(0.0, to_seconds(now_micros() - oldest))
        yield GaugeMetricFamily(self._name, self._told, value=age)


@dataclass(frozen=True, slots=True)
class Metrics:
    """All metrics of one process, a field for each, in a registry of their own. Times: seconds."""

    registry: CollectorRegistry
    info: Gauge = field(init=False)
    capture_delay: Gauge = field(init=False)
    frontier: LateGauge = field(init=False)
    no_memory: Gauge = field(init=False)
    losses: Counter = field(init=False)
    lag_records: Gauge = field(init=False)
    lag_seconds: Gauge = field(init=False)
    window_age: Gauge = field(init=False)
    dropped: Counter = field(init=False)
    batch_duration: Histogram = field(init=False)
    state_rows: Gauge = field(init=False)
    executors: LateGauge = field(init=False)
    examined: Counter = field(init=False)
    suspects: Counter = field(init=False)
    findings: Counter = field(init=False)
    open_findings: Gauge = field(init=False)
    stale_right: AgeGauge = field(init=False)
    repairs: Counter = field(init=False)
    time_to_repair: Histogram = field(init=False)
    sampled_looks: Counter = field(init=False)
    slo_target: LateGauge = field(init=False)
    dead_letters: Counter = field(init=False)
    unresolved: Counter = field(init=False)
    breaker: Gauge = field(init=False)
    clock_skew: Gauge = field(init=False)
    restarts: Counter = field(init=False)
    started: Gauge = field(init=False)
    last_batch: Gauge = field(init=False)
    paused: Gauge = field(init=False)
    agent_up: Gauge = field(init=False)
    not_captured: Gauge = field(init=False)
    tally_looks: Counter = field(init=False)
    tally_waiting: Gauge = field(init=False)
    tally_turn: Gauge = field(init=False)
    tally_restarts: Counter = field(init=False)
    sweep_faults: Counter = field(init=False)
    sweep_rows: Counter = field(init=False)
    sweep_due: Gauge = field(init=False)
    sweep_success: Gauge = field(init=False)
    sweep_failure: Gauge = field(init=False)
    sweep_duration: Gauge = field(init=False)
    retention: Gauge = field(init=False)
    _shown: dict[str, set[Labels]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make each metric. Those that count for an alert begin at 0: see `_FROM_THE_START`."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        for name, kind, metric, help_text, labels in _DECLARED:
            make = partial(kind, buckets=BUCKETS) if kind is Histogram else kind
            made = make(f"reconciler_{metric}", help_text, labels, registry=self.registry)
            object.__setattr__(self, name, made)
        for name, values in _FROM_THE_START.items():
            for each in product(*values):
                getattr(self, name).labels(*each)
        ProcessCollector(registry=self.registry)
        self.registry.register(MemoryCollector())

    def begin(self, keyspace: str, mode: str) -> None:
        """Show that a process runs: for which keyspace of James, in which mode, which version."""
        self.info.labels(keyspace, mode, version()).set(1)
        self.started.set_to_current_time()

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
    ("info", Gauge, "info", "1; what runs is in the labels", ("keyspace", "mode", "version")),
    ("capture_delay", Gauge, "capture_delay_seconds", "Age of a canary when read", ("node",)),
    ("frontier", LateGauge, "frontier_timestamp_seconds", "Written before it: all compared", ()),
    (
        "no_memory",
        Gauge,
        "memory_not_begun",
        "1 while lineage has not begun, for this reason",
        ("reason",),
    ),
    ("losses", Counter, "losses", "Times that change events may have been lost", ("why",)),
    ("lag_records", Gauge, "kafka_lag_records", "Records not read yet", ("topic", "partition")),
    (
        *("lag_seconds", Gauge, "kafka_lag_seconds", "Age of the oldest record not read yet"),
        ("topic", "partition"),
    ),
    (
        *("window_age", Gauge, "window_age_seconds", "Age of the oldest write of the last window"),
        ("family",),
    ),
    ("dropped", Counter, "rows_dropped_by_watermark", "Rows lost to a clock step; fresh start", ()),
    ("batch_duration", Histogram, "batch_duration_seconds", "Duration of batches", ()),
    ("state_rows", Gauge, "state_rows", "Ranges of offsets that wait", ("family",)),
    ("executors", LateGauge, "executors", "Spark's executors; absent with a local master", ()),
    ("examined", Counter, "keys_examined", "Slots compared", ("family",)),
    ("suspects", Counter, "suspects", "Slots read again, truth at SERIAL", ("family",)),
    (
        "findings",
        Counter,
        "findings",
        "Times that a finding came to a state",
        ("projection", "kind", "state"),
    ),
    (
        "open_findings",
        Gauge,
        "open_findings",
        "Findings that are open now",
        ("projection", "kind", "state"),
    ),
    (
        *("stale_right", AgeGauge, "stale_right_age_seconds"),
        *("Since the oldest open right that should be gone was found; 0: none", ()),
    ),
    ("repairs", Counter, "repairs", "Repairs by outcome", ("projection", "outcome")),
    ("time_to_repair", Histogram, "time_to_repair_seconds", "From oldest write to repair", ()),
    (
        *("sampled_looks", Counter, "sampled_looks", "Looks at sampled changes of an age in s"),
        ("system", "age", "outcome"),
    ),
    ("slo_target", LateGauge, "slo_target", "Share that is to agree 10 min after a change", ()),
    ("dead_letters", Counter, "dead_letters", "Records kept undecoded", ("reason",)),
    ("unresolved", Counter, "unresolved_keys", "Deleted rows whose message is unknown", ()),
    ("breaker", Gauge, "breaker_open", "1 while this breaker is open", ("breaker",)),
    ("clock_skew", Gauge, "clock_skew_seconds", "A clock against ours", ("source",)),
    ("restarts", Counter, "query_restarts", "Times a dead query was restarted", ("family",)),
    ("started", Gauge, "started_timestamp_seconds", "When this process started", ()),
    ("last_batch", Gauge, "last_batch_timestamp_seconds", "When the last batch ended", ("family",)),
    ("paused", Gauge, "repairs_paused", "1 while this holds repairs back", ("reason",)),
    ("agent_up", Gauge, "agent_up", "1 while this agent reports that it is healthy", ("agent",)),
    (
        *("not_captured", Gauge, "table_not_captured"),
        *("1 while no event of some of its late writes came", ("table",)),
    ),
    ("tally_looks", Counter, "tally_looks", "Observations of counters", ("tally", "outcome")),
    ("tally_waiting", Gauge, "tallies_waiting", "Counters whose observation is due", ()),
    (
        "tally_turn",
        Gauge,
        "tally_turn_timestamp_seconds",
        "When the counting thread last ran; 0: never",
        (),
    ),
    ("tally_restarts", Counter, "tally_restarts", "Times that counting restarted", ()),
    ("sweep_faults", Counter, "sweep_faults", "Sweeps of the stream that a defect ended", ()),
    ("sweep_rows", Counter, "sweep_rows", "Rows that sweeps of this process compared", ()),
    ("sweep_due", Gauge, "sweep_due", "1 while rows wait for a full comparison", ("family",)),
    (
        *("sweep_success", Gauge, "sweep_last_success_timestamp_seconds"),
        *("When the last sweep ended that read the whole truth", ("family",)),
    ),
    (
        *("sweep_failure", Gauge, "sweep_last_failure_timestamp_seconds"),
        *("When the last sweep failed: its end, or its beginning if it broke off", ("family",)),
    ),
    (
        *("sweep_duration", Gauge, "sweep_duration_seconds"),
        *("From beginning to end of the last sweep that ended", ("family",)),
    ),
    (
        *("retention", Gauge, "kafka_retention_seconds"),
        *("How long a topic keeps records; absent if for ever", ("topic",)),
    ),
)

_FROM_THE_START: Mapping[str, Sequence[Iterable[str]]] = {
    "losses": (Cause,),
    "restarts": ([family.name for family in FAMILIES if family.projections],),
    "sampled_looks": (
        [projection.name for projection in MESSAGE.projections],
        [age_label(age) for age in AGES],
        COUNTED,
    ),
    "tally_looks": ([each.name for family in FAMILIES for each in family.tallies], JUDGED),
}
"""The labels that exist at 0: Prometheus sees no increase in a series that begins with 1."""
