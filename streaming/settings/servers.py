"""Settings of the servers: Cassandra, Kafka, the agents, canaries, metrics."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from streaming.settings.section import Seconds, Section

KEYSPACE = "{keyspace}"


class CassandraSettings(Section):
    """James's Cassandra cluster, and the reconciler's own keyspace in it."""

    hosts: tuple[str, ...] = Field(("127.0.0.1",), min_length=1, description="contact points")
    port: int = Field(9042, gt=0, lt=65536, description="native protocol port")
    keyspace: str = Field("apache_james", description="James's keyspace")
    own_keyspace: str = Field("reconciler", description="journal, lineage, bookmarks, lease")
    own_replication: int | None = Field(
        None,
        gt=0,
        description="copies of own_keyspace when it is created; without it: 3, or one a node",
    )
    username: str | None = Field(None, description="role to log in as; none without one")
    password: str | None = Field(None, repr=False, description="its password")
    local_dc: str | None = Field(
        None, description="the one data centre whose nodes are talked to; no level follows from it"
    )
    consistency: Literal["QUORUM", "LOCAL_QUORUM", "EACH_QUORUM"] = Field(
        "QUORUM", description="of all reads and writes: as James's own"
    )
    serial_consistency: Literal["SERIAL", "LOCAL_SERIAL"] = Field(
        "SERIAL", description="of confirming reads and lightweight transactions: as James's own"
    )
    request_timeout: Seconds = Field(10.0, description="longest wait for one answer, seconds")
    rows_per_second: PositiveInt = Field(
        50_000, description="most rows read per second and worker; protects production"
    )
    jmx_port: int = Field(
        7199, gt=0, lt=65536, description="each node's JMX port; only `lwt-report` reads it"
    )
    jmx_username: str | None = Field(None, description="role that JMX asks for; none without one")
    jmx_password: str | None = Field(None, repr=False, description="its password")

    @property
    def levels_are_set(self) -> bool:
        """Whether both consistency levels are configured explicitly."""
        return {"consistency", "serial_consistency"} <= self.model_fields_set


class KafkaSettings(Section):
    """Where the agents publish, and our own topics and group; `{keyspace}` is James's keyspace."""

    bootstrap_servers: str = Field("127.0.0.1:9092", description="comma-separated brokers")
    topic_prefix: str = Field(
        "james", description="the agent's topic.prefix, and the one topic of all its events"
    )
    suspects_topic: str = Field(
        "reconciler.{keyspace}.suspects", description="keys to look at again"
    )
    observe_suspects_topic: str = Field(
        "reconciler.{keyspace}.suspects.observe", description="the same for observe mode"
    )
    dead_letters_topic: str = Field(
        "reconciler.{keyspace}.dead-letters", description="undecodable events"
    )
    group: str = Field(
        "reconciler.{keyspace}", description="consumer group that offsets are committed to"
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


class MetricsSettings(Section):
    """The Prometheus endpoint."""

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(9464, ge=0, lt=65536, description="port; 0 takes a free one")
