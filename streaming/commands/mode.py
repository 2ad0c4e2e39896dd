"""What a stream calls its own: the two modes keep everything apart but findings and lineage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconcilers.family import Family
from streaming.settings import Mode, Settings


@dataclass(frozen=True, slots=True)
class StreamNames:
    """The topic, consumer group, checkpoint, lease and bookmarks of the stream in one mode."""

    mode: Mode
    suspects_topic: str
    group: str
    checkpoint: Path
    keyspace: str

    @classmethod
    def of(cls, settings: Settings, mode: Mode) -> StreamNames:
        """Those of the stream that these settings describe."""
        kafka, where = settings.kafka, settings.stream.checkpoint_dir / mode
        if mode is Mode.REPAIR:
            topic, group = kafka.suspects_topic, kafka.group
        else:
            topic, group = kafka.observe_suspects_topic, f"{kafka.group}-{mode}"
        return cls(mode, topic, group, where, settings.cassandra.keyspace)

    @property
    def lease(self) -> str:
        """One live stream repairs a keyspace."""
        return f"{self.keyspace}/{self.mode}"

    def bookmarks(self, family: Family) -> str:
        """Names a family's bookmarks."""
        return f"{self.keyspace}/{family.name}/{self.mode}"
