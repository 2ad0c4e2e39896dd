"""All settings in one frozen model, and the checks that need several of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from reconcilers.counters.live_table import without
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.declared.families.rights import RIGHTS, rights_from
from reconcilers.declared.family import Family, keeping
from reconcilers.rows.table_use import optional_table
from streaming.settings.section import Section
from streaming.settings.servers import (
    AgentSettings,
    CanarySettings,
    CassandraSettings,
    KafkaSettings,
    MetricsSettings,
)
from streaming.settings.spark import SparkOptions
from streaming.settings.sweeps import SweepSettings
from streaming.settings.work import (
    AttachmentsSettings,
    MailboxesSettings,
    RepairSettings,
    RightsSettings,
    SampleSettings,
    SloSettings,
    StreamSettings,
    TallySettings,
)


class Settings(Section):
    """All settings."""

    cassandra: CassandraSettings = CassandraSettings()
    kafka: KafkaSettings = KafkaSettings()
    stream: StreamSettings = StreamSettings()
    repair: RepairSettings = RepairSettings()
    rights: RightsSettings = RightsSettings()
    attachments: AttachmentsSettings = AttachmentsSettings()
    tally: TallySettings = TallySettings()
    sample: SampleSettings = SampleSettings()
    slo: SloSettings = SloSettings()
    sweep: SweepSettings = SweepSettings()
    mailboxes: MailboxesSettings = MailboxesSettings()
    metrics: MetricsSettings = MetricsSettings()
    agent: AgentSettings = AgentSettings()
    canary: CanarySettings = CanarySettings()
    spark: SparkOptions = Field((), repr=False, description="options of Spark's")

    def __getstate__(self) -> dict[Any, Any]:
        """Spark's options may hold its secret, and no worker needs them."""
        state = super().__getstate__()
        return state | {"__dict__": state["__dict__"] | {"spark": ()}}

    def families(self) -> tuple[Family, ...]:
        """Each family with its configured projections and tallies; the first is of messages."""
        named = (*self.repair.projections, *self.tally.projections)
        kept = (self._one_table(keeping(family, named)) for family in self._declared())
        return tuple(family for family in kept if family.repaired)

    def _declared(self) -> Iterator[Family]:
        """All families that are switched on, those of rights with the configured truth."""
        truth = self.rights.truth
        on = {MAILBOX.name: self.mailboxes.watch, RIGHT_LISTS.name: truth == "eventstore"}
        for family in FAMILIES:
            if family is RIGHTS:
                yield from () if truth == "off" else (rights_from(truth),)
            elif optional_table(family) not in (None, *self.attachments.tables):
                continue
            elif on.get(family.name, True):
                yield family

    def _one_table(self, family: Family) -> Family:
        """Keep, of two tables of quotas, the configured one."""
        wanted = self.tally.quota_table
        if wanted == "auto" or wanted not in {each.table for each in family.tallies}:
            return family
        return without(family, (each for each in family.tallies if each.table != wanted))

    @model_validator(mode="after")
    def _name_the_keyspace(self) -> Settings:
        """Give each installation on one Kafka its own topics and group."""
        object.__setattr__(self, "kafka", self.kafka.of(self.cassandra.keyspace))
        return self

    @model_validator(mode="after")
    def _delay_spans_windows(self) -> Settings:
        if self.stream.window > self.stream.delay:
            raise ValueError("stream.window must not be longer than stream.delay")
        if (self.stream.trigger or 0) > self.stream.window:
            raise ValueError("stream.trigger must not be longer than stream.window")
        return self
