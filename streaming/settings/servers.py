"""Settings of the servers: Cassandra, Kafka, the agents, canaries, metrics."""

from __future__ import annotations

import os
from typing import Any, Literal

from pydantic import Field, PositiveInt

from streaming.settings.section import PREFIX, KeyspaceName, Seconds, Section

KEYSPACE = "{keyspace}"
PASSWORD = f"{PREFIX}CASSANDRA__PASSWORD"
"""Where a worker reads the password: it is in no job that is sent to one."""


class CassandraSettings(Section):
    """James's Cassandra cluster, and the reconciler's own keyspace in it."""

    hosts: tuple[str, ...] = Field(("127.0.0.1",), min_length=1, description="contact points")
    port: int = Field(9042, gt=0, lt=65536, description="native protocol port")
    keyspace: KeyspaceName = Field("apache_james", description="James's keyspace")
    own_keyspace: KeyspaceName = Field(
        "reconciler", description="journal, lineage, bookmarks, lease"
    )
    own_replication: int | None = Field(
        None,
        gt=0,
        description="copies of own_keyspace when it is created; without it: 3, or one a node",
    )
    username: str | None = Field(None, description="role to log in as, if one is needed")
    password: str | None = Field(
        None,
        repr=False,
        description="its password; executors of a cluster read it from their environment",
    )
    local_dc: str | None = Field(
        None, description="the only data centre whose nodes are contacted; it sets no level"
    )
    consistency: Literal["QUORUM", "LOCAL_QUORUM", "EACH_QUORUM"] = Field(
        "QUORUM", description="of all reads and writes; as James's own"
    )
    serial_consistency: Literal["SERIAL", "LOCAL_SERIAL"] = Field(
        "SERIAL", description="of confirming reads and lightweight transactions; as James's own"
    )
    request_timeout: Seconds = Field(10.0, description="longest wait for one answer, seconds")
    rows_per_second: PositiveInt = Field(
        100_000,
        description="most rows that all workers together read a second; protects James",
    )
    partitions_per_read: PositiveInt = Field(
        100,
        description="most partitions that one read names; no more than Cassandra's guardrail"
        " partition_keys_in_select_fail_threshold allows",
    )
    jmx_port: int = Field(
        7199, gt=0, lt=65536, description="each node's JMX port; only `lwt-report` reads it"
    )
    jmx_username: str | None = Field(None, description="role for JMX, if one is needed")
    jmx_password: str | None = Field(None, repr=False, description="its password")

    def __getstate__(self) -> dict[Any, Any]:
        """Without passwords: Spark sends and stores what is pickled."""
        state = super().__getstate__()
        return state | {"__dict__": state["__dict__"] | {"password": None, "jmx_password": None}}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """With the password of this process's environment."""
        own = {"password": os.environ.get(PASSWORD)}
        super().__setstate__(state | {"__dict__": state["__dict__"] | own})

    @property
    def levels_are_set(self) -> bool:
        """Whether both consistency levels are configured explicitly."""
        return {"consistency", "serial_consistency"} <= self.model_fields_set


class KafkaSettings(Section):
    """The agents' topics, our own topics and group. `{keyspace}` stands for James's keyspace."""

    bootstrap_servers: str = Field("127.0.0.1:9092", description="comma-separated brokers")
    topic_prefix: str = Field(
        "james", description="the agent's `topic.prefix`, and the one topic of all its events"
    )
    suspects_topic: str = Field(
        "reconciler.{keyspace}.suspects", description="keys to look at again"
    )
    observe_suspects_topic: str = Field(
        "reconciler.{keyspace}.suspects.observe", description="the same for observe mode"
    )
    dead_letters_topic: str = Field(
        "reconciler.{keyspace}.dead-letters", description="events that cannot be examined"
    )
    group: str = Field(
        "reconciler.{keyspace}", description="consumer group for which offsets are committed"
    )
    max_offsets_per_batch: PositiveInt = Field(
        150_000, description="most records read in one batch, over all topics"
    )

    def of(self, keyspace: str) -> KafkaSettings:
        """A copy with the name of James's keyspace in our topics and group."""
        ours = ("suspects_topic", "observe_suspects_topic", "dead_letters_topic", "group")
        named = {name: getattr(self, name).replace(KEYSPACE, keyspace) for name in ours}
        return self.model_copy(update=named)


class AgentSettings(Section):
    """The Debezium agents, one a Cassandra node; the stream and `doctor` read their health."""

    http: tuple[str, ...] = Field((), description="their addresses: http://host:port")


class CanarySettings(Section):
    """Rows that we write to see them return as events: earlier events have then arrived, too."""

    keyspace: KeyspaceName = Field(
        "reconciler_canary", description="keyspace of the canaries, marked with CDC"
    )
    interval: Seconds = Field(
        1.0,
        description="time between two canaries of a node; at least nodes × partitions / 2,000",
    )
    usual_delay: Seconds = Field(
        10.0, description="how long capture usually takes; removals wait while it takes far longer"
    )
    lost_after: Seconds = Field(600.0, description="a canary missing for longer counts as lost")
    longest_pause: Seconds = Field(600.0, description="longer without canaries counts as a loss")


class MetricsSettings(Section):
    """The Prometheus endpoint."""

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(9464, ge=0, lt=65536, description="the stream's port; 0 takes a free one")
    canary_port: int = Field(9465, ge=0, lt=65536, description="the port of `reconcile canary`")
    sweep_port: int = Field(9466, ge=0, lt=65536, description="the port of `reconcile sweep`")
