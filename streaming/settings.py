"""All settings, in one frozen model; the only reader of settings files and environment.

A setting is looked up in the environment first (``RECONCILE_CASSANDRA__PORT=9042``), then in the
TOML file given by ``--config``, then here. Durations are seconds. `docs/settings.md` is made from
the descriptions below.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from reconcilers.errors import Misconfigured
from reconcilers.families import FAMILIES
from reconcilers.family import Family, Projection, keeping
from reconcilers.projections import MESSAGE_PROJECTIONS
from reconcilers.tallies import MAILBOX_TALLIES, USER_TALLIES
from reconcilers.tally import Tally

PREFIX = "RECONCILE_"
LISTS = frozenset(
    {
        ("cassandra", "hosts"),
        ("agent", "http"),
        ("repair", "projections"),
        ("tally", "projections"),
    }
)
"""Settings that are several values: comma-separated in the environment."""

SECONDS = "seconds"
"""Marks a duration's unit, for docs/settings.md."""
Seconds = Annotated[float, Field(gt=0), SECONDS]
MaybeSeconds = Annotated[float | None, Field(gt=0), SECONDS]
Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]


RENAMED = {
    ("stream", "restart_most"): "restart_backoff_max",
    ("repair", "report_again"): "recheck_interval",
    ("repair", "share_needs_keys"): "share_min_keys",
    ("repair", "held_mailbox_rows"): "empty_truth_min_rows",
    ("repair", "shadow"): "delete_clock_tolerance",
    ("tally", "latest"): "max_update_lag",
    ("tally", "first_messages"): "first_correction_max_messages",
    ("tally", "first_octets"): "first_correction_max_octets",
}
"""Settings of version 0.1 by section and old name; see CHANGELOG.md."""


class Mode(StrEnum):
    """What a stream may do; given at the command line. Observing writes to no mail table."""

    OBSERVE = "observe"
    REPAIR = "repair"


class Section(BaseModel):
    """A frozen part of the settings that refuses names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CassandraSettings(Section):
    """James's Cassandra cluster, and the reconciler's own keyspace in it."""

    hosts: tuple[str, ...] = Field(("127.0.0.1",), min_length=1, description="contact points")
    port: int = Field(9042, gt=0, lt=65536, description="native protocol port")
    keyspace: str = Field("apache_james", description="James's keyspace")
    own_keyspace: str = Field("reconciler", description="journal, lineage, bookmarks, lease")
    own_replication: int = Field(
        1, gt=0, description="replication factor of own_keyspace when it is created"
    )
    username: str | None = Field(None, description="role to log in as; none without one")
    password: str | None = Field(None, repr=False, description="its password")
    local_dc: str | None = Field(
        None, description="the one data centre to talk to; consistency becomes LOCAL_*"
    )
    request_timeout: Seconds = Field(10.0, description="longest wait for one answer, seconds")
    rows_per_second: Count = Field(
        50_000, description="most rows read per second and worker; protects production"
    )


class KafkaSettings(Section):
    """Where the Debezium agent publishes, and the reconciler's own topics."""

    bootstrap_servers: str = Field("127.0.0.1:9092", description="comma-separated brokers")
    topic_prefix: str = Field(
        "james", description="the agent's topic.prefix, and the one topic of all its events"
    )
    suspects_topic: str = Field("reconciler.suspects", description="keys to look at again")
    observe_suspects_topic: str = Field(
        "reconciler.suspects.observe", description="the same for observe mode"
    )
    dead_letters_topic: str = Field("reconciler.dead-letters", description="undecodable events")
    group: str = Field("reconciler", description="consumer group that offsets are committed to")
    max_offsets_per_batch: Count = Field(
        150_000, description="most records read in one batch, over all topics"
    )


class StreamSettings(Section):
    """The delay-and-recheck window and the Spark job."""

    checkpoint_dir: str = Field(
        "checkpoint", description="Spark's own files: a folder or a URI of Hadoop's, disposable"
    )
    delay: Seconds = Field(45.0, description="D: nothing is judged before; James retries for 31 s")
    window: Seconds = Field(5.0, description="W: a key comes out D to D + 1.5 W after it is read")
    trigger: MaybeSeconds = Field(None, description="a batch starts so often; else each window")
    master: str = Field("local[2]", description="Spark master")
    shuffle_partitions: Count = Field(2, description="tasks that share a look")
    jars: Path = Field(Path(".jars/spark"), description="folder of the Kafka connector's jars")
    driver_memory: str = Field("1g", description="heap of the Spark driver")
    restart_backoff_max: Seconds = Field(
        60.0, description="longest pause before a dead query restarts"
    )


class RepairSettings(Section):
    """What may be repaired, how often it is tried, and when a person decides."""

    projections: tuple[str, ...] = Field(
        tuple(each.name for each in MESSAGE_PROJECTIONS),
        description="what is kept true; messages always is",
    )
    attempts: Count = Field(3, description="repairs of one difference before it is stuck")
    delete_clock_tolerance: Seconds = Field(
        10.0, description="a row that outlives its delete by less is reported"
    )
    re_add_shadowed: bool = Field(False, description="re-add rows that outlived their delete")
    recheck_interval: Seconds = Field(
        600.0, description="findings that wait are looked at again after"
    )
    empty_truth_min_rows: Count = Field(
        10, description="mailboxes of this size without any truth are held for a person"
    )
    suspects_per_minute: Count = Field(1000, description="breaker: most suspects a minute")
    suspect_share: Share = Field(0.05, description="breaker: largest share of suspects")
    removals_per_minute: Count = Field(100, description="breaker: most removals a minute")
    removal_share: Share = Field(0.01, description="breaker: largest share of removals")
    share_min_keys: Count = Field(1000, description="the shares count from so many keys on")
    writes_per_minute: Count = Field(
        2000, description="most repairs a minute; those above are held for a later minute"
    )
    log_days: Count = Field(90, description="how long the log (and so undo) is kept, days")

    @field_validator("projections")
    @classmethod
    def _are_declared(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, MESSAGE_PROJECTIONS)


class TallySettings(Section):
    """Counters and quotas: when one counts as wrong, and how much is read to know."""

    projections: tuple[str, ...] = Field(
        tuple(dict.fromkeys(each.name for each in (*MAILBOX_TALLIES, *USER_TALLIES))),
        description="what is kept right",
    )
    window: Seconds = Field(60.0, description="a mailbox that changes is counted once in this time")
    max_update_lag: MaybeSeconds = Field(
        None,
        description="L: James writes a counter within it, after the truth; at most, and without it:"
        " stream.delay",
    )
    looks: Count = Field(3, description="K: looks on one side, a delay apart, before a correction")
    chunk: Count = Field(1000, description="UIDs counted together; another value: all anew")
    rows_per_second: Count = Field(5_000, description="most rows read per second to be counted")
    after_outage: Seconds = Field(
        600.0, description="no correction while a node is down, nor this long after"
    )
    first_correction_max_messages: Count = Field(
        1_000, description="a quota root's first correction above it waits for a person, messages"
    )
    first_correction_max_octets: Count = Field(
        100_000_000, description="the same for its size, octets"
    )

    @field_validator("projections")
    @classmethod
    def _are_declared(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, (*MAILBOX_TALLIES, *USER_TALLIES))


def _known(names: tuple[str, ...], declared: Iterable[Projection | Tally]) -> tuple[str, ...]:
    known = list(dict.fromkeys(each.name for each in declared))
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is none of {', '.join(known)}")
    return names


class MetricsSettings(Section):
    """The Prometheus endpoint."""

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(9464, ge=0, lt=65536, description="port; 0 takes a free one")


class AgentSettings(Section):
    """The Debezium agents, one on each Cassandra node; the stream and `doctor` ask how they are."""

    http: tuple[str, ...] = Field((), description="their addresses, as http://host:port")


class CanarySettings(Section):
    """Rows of our own, written to come back as events: then all before them has come, too."""

    keyspace: str = Field(
        "reconciler_canary", description="keyspace of the canaries, marked with CDC"
    )
    interval: Seconds = Field(1.0, description="a canary is written to each node every so often")
    usual_delay: Seconds = Field(
        10.0, description="what capture takes as a rule; removals wait while it takes far longer"
    )
    lost_after: Seconds = Field(600.0, description="a missing canary counts as lost after so long")
    longest_pause: Seconds = Field(600.0, description="a longer pause of canaries counts as a loss")


class Settings(Section):
    """Everything that can be set."""

    cassandra: CassandraSettings = CassandraSettings()
    kafka: KafkaSettings = KafkaSettings()
    stream: StreamSettings = StreamSettings()
    repair: RepairSettings = RepairSettings()
    tally: TallySettings = TallySettings()
    metrics: MetricsSettings = MetricsSettings()
    agent: AgentSettings = AgentSettings()
    canary: CanarySettings = CanarySettings()

    @property
    def max_update_lag(self) -> float:
        """L, in seconds."""
        return self.tally.max_update_lag or self.stream.delay

    def families(self) -> tuple[Family, ...]:
        """Each family with the projections or tallies that are named; the first is of messages."""
        named = (*self.repair.projections, *self.tally.projections)
        kept = (keeping(family, named) for family in FAMILIES)
        return tuple(family for family in kept if family.repaired)

    @model_validator(mode="after")
    def _delay_spans_windows(self) -> Settings:
        if self.stream.window > self.stream.delay:
            raise ValueError("stream.window must not be longer than stream.delay")
        if (self.stream.trigger or 0) > self.stream.window:
            raise ValueError("stream.trigger must not be longer than stream.window")
        if self.tally.projections and self.max_update_lag > self.stream.delay:
            raise ValueError("tally.max_update_lag must not be longer than stream.delay")
        return self


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file and the environment. Raises `Misconfigured` in one clear line."""
    values = _from_file(path) if path is not None else {}
    _overlay(values, environment)
    _refuse_old_names(values)
    try:
        return Settings.model_validate(values)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise Misconfigured(f"setting {where}: {first['msg']} (see docs/settings.md)") from wrong


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as unreadable:
        raise Misconfigured(f"cannot read settings {path}: {unreadable.strerror}") from unreadable
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise Misconfigured(f"settings {path} is not TOML: {broken}") from broken


def _refuse_old_names(values: Mapping[str, Any]) -> None:
    for (section, old), new in RENAMED.items():
        given = values.get(section)
        if isinstance(given, Mapping) and old in given:
            raise Misconfigured(f"setting {section}.{old} is now called {section}.{new}")


def _overlay(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    """``RECONCILE_<SECTION>__<SETTING>``; lists are comma-separated."""
    for name, text in environment.items():
        section, dots, setting = name.removeprefix(PREFIX).lower().partition("__")
        if not name.startswith(PREFIX) or not dots:
            continue
        several = tuple(each for each in text.split(",") if each)
        value = several if (section, setting) in LISTS else text
        values.setdefault(section, {})[setting] = value
