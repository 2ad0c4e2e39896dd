"""Settings of the servers: Cassandra, Kafka, the agents, canaries, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from streaming.settings.secrets import (
    A_CA,
    A_CERTIFICATE,
    A_KEY,
    A_PASSWORD,
    A_PASSWORD_FILE,
    KAFKA_PASSWORD,
    PASSWORD,
    WithSecrets,
    refuse_halves,
)
from streaming.settings.section import KeyspaceName, Seconds, Section

KEYSPACE = "{keyspace}"
NEEDS_A_LOGIN = "needs username, and password or password_file"


class CassandraSettings(WithSecrets):
    """James's Cassandra cluster, and the reconciler's own keyspace in it."""

    name: ClassVar = "cassandra"
    secrets: ClassVar = {"password": PASSWORD, "jmx_password": None}

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
    password: str | None = A_PASSWORD
    password_file: Path | None = A_PASSWORD_FILE
    tls: bool = Field(False, description="whether nodes are connected to by TLS")
    tls_ca: Path | None = A_CA
    tls_certificate: Path | None = A_CERTIFICATE
    tls_key: Path | None = A_KEY
    tls_verify_host_names: bool = Field(
        True, description="whether a node's certificate must name its address"
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
        20_000,
        description="most rows that all workers together read a second, fewer while Cassandra"
        " answers slowly; protects James",
    )
    partitions_per_read: PositiveInt = Field(
        100,
        description="most partitions that one read names; no more than Cassandra's guardrail"
        " partition_keys_in_select_fail_threshold allows",
    )
    jmx_port: int = Field(
        7199, gt=0, lt=65536, description="each node's JMX port; only `lwt-report` reads it"
    )
    jmx_tls: bool = Field(False, description="TLS for JMX, verified by tls_ca; needs it")
    jmx_username: str | None = Field(None, description="role for JMX, if one is needed")
    jmx_password: str | None = Field(None, repr=False, description="its password")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_halves(self)
        if not self.tls and (self.tls_ca or self.tls_certificate):
            raise ValueError("tls_ca and tls_certificate need tls = true")
        if self.jmx_tls and not self.tls_ca:
            raise ValueError("jmx_tls needs tls_ca")
        return self

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.tls

    @property
    def levels_are_set(self) -> bool:
        """Whether both consistency levels are configured explicitly."""
        return {"consistency", "serial_consistency"} <= self.model_fields_set


class KafkaSettings(WithSecrets):
    """The agents' topics, our own topics and group. `{keyspace}` stands for James's keyspace."""

    name: ClassVar = "kafka"
    secrets: ClassVar = {"password": KAFKA_PASSWORD}

    bootstrap_servers: str = Field("127.0.0.1:9092", description="comma-separated brokers")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT",
        description="whether brokers are connected to by TLS (SSL), with a login (SASL)",
    )
    sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = Field(
        "SCRAM-SHA-512", description="how to log in, with SASL"
    )
    username: str | None = Field(None, description="user to log in as, with SASL")
    password: str | None = A_PASSWORD
    password_file: Path | None = A_PASSWORD_FILE
    tls_ca: Path | None = A_CA
    tls_certificate: Path | None = A_CERTIFICATE
    tls_key: Path | None = A_KEY
    tls_verify_host_names: bool = Field(
        True, description="whether a broker's certificate must name its host"
    )
    topic_prefix: str = Field(
        "james", description="the agent's `topic.prefix`, and the one topic of all its events"
    )
    partitions: PositiveInt = Field(
        8,
        le=64,
        description="partitions of that topic where `doctor --fix` creates it: two for each core of"
        " the stream; each gets a canary of each node",
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

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_halves(self)
        secret = self.password is not None or self.password_file is not None
        if self.logs_in and (self.username is None or not secret):
            raise ValueError(f"security_protocol {self.security_protocol} {NEEDS_A_LOGIN}")
        if not self.logs_in and self.username is not None:
            raise ValueError("username needs a security_protocol with SASL")
        if not self.encrypted and (self.tls_ca or self.tls_certificate):
            raise ValueError("tls_ca and tls_certificate need a security_protocol with SSL")
        return self

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.security_protocol.endswith("SSL")

    @property
    def logs_in(self) -> bool:
        """Whether connections have a login."""
        return self.security_protocol.startswith("SASL")

    def of(self, keyspace: str) -> KafkaSettings:
        """A copy with the name of James's keyspace in our topics and group."""
        ours = ("suspects_topic", "observe_suspects_topic", "dead_letters_topic", "group")
        named = {name: getattr(self, name).replace(KEYSPACE, keyspace) for name in ours}
        return self.model_copy(update=named)


class AgentSettings(Section):
    """The Debezium agents, one a Cassandra node; the stream and `doctor` read their health."""

    http: tuple[str, ...] = Field(
        (), description="their addresses: http://host:port, or https:// of a proxy"
    )
    tls_ca: Path | None = A_CA


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
    tls_certificate: Path | None = Field(
        None, description="PEM file of its certificate and its chain; it then speaks TLS"
    )
    tls_key: Path | None = A_KEY
    tls_ca: Path | None = Field(
        None, description="PEM file of the authorities whose clients are answered; else anybody is"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_halves(self)
        if self.tls_ca and not self.tls_certificate:
            raise ValueError("tls_ca needs tls_certificate")
        return self
