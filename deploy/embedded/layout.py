"""Where the files of a stack are."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one stack below its data directory."""

    root: Path

    @property
    def spec_file(self) -> Path:
        """The options decided at the first start."""
        return self.root / "stack.json"

    @property
    def settings_file(self) -> Path:
        """The ready reconcile.toml."""
        return self.root / "reconcile.toml"

    @property
    def certificates(self) -> Path:
        """What a secure stack's own authority has signed, and the keys."""
        return self.root / "certificates"

    @property
    def logs(self) -> Path:
        """One log a server."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """Pid files, locks and holds."""
        return self.root / "run"

    @property
    def cassandra(self) -> Path:
        """Cassandra's data and configuration."""
        return self.root / "cassandra"

    @property
    def kafka(self) -> Path:
        """Kafka's data and configuration."""
        return self.root / "kafka"

    @property
    def agent(self) -> Path:
        """The agent's offsets and configuration."""
        return self.root / "agent"

    @property
    def cassandra_yaml(self) -> Path:
        """The node's configuration, which its agent reads too."""
        return self.cassandra / "conf" / "cassandra.yaml"

    @property
    def rackdc(self) -> Path:
        """Where node and agent read which data centre is the node's."""
        return self.cassandra / "conf" / "cassandra-rackdc.properties"

    def of_node(self, number: int) -> "Layout":
        """The folders of one node: the first has those of the stack."""
        return self if number == 1 else Layout(self.root / f"node-{number}")

    def make(self) -> None:
        """Make every folder that is not there."""
        for folder in (self.logs, self.run, self.cassandra, self.kafka, self.agent):
            folder.mkdir(parents=True, exist_ok=True)
