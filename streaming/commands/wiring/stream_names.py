"""The names that a stream uses. Only findings and lineage are shared by both modes."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.declared.family import Family
from streaming.settings import Mode, Settings
from streaming.topics import suspects_of


@dataclass(frozen=True, slots=True)
class StreamNames:
    """The topic, consumer group, checkpoint folder, lease and bookmarks of the stream in a mode."""

    mode: Mode
    suspects_topic: str
    group: str
    checkpoint: str
    keyspace: str

    @classmethod
    def of(cls, settings: Settings, mode: Mode) -> StreamNames:
        """The names of the stream of these settings in this mode."""
        kafka, keyspace = settings.kafka, settings.cassandra.keyspace
        where = f"{settings.stream.checkpoint_dir.rstrip('/')}/{keyspace}/{mode}"
        group = kafka.group if mode is Mode.REPAIR else f"{kafka.group}-{mode}"
        return cls(mode, suspects_of(kafka, mode), group, where, keyspace)

    @property
    def lease(self) -> str:
        """The lease that lets one live stream repair a keyspace."""
        return f"{self.keyspace}/{self.mode}"

    @property
    def standby(self) -> str:
        """The lease that shows which stream waits for that one."""
        return f"{self.lease}/standby"

    def bookmarks(self, family: Family) -> str:
        """The name under which a family's bookmarks are stored."""
        return f"{self.keyspace}/{family.name}/{self.mode}"
