"""The stream of a run in a group of its own, so that its connections can be cut."""

from deploy.nemesis.hosts import in_group
from deploy.nemesis.links import STREAM_GROUP
from deploy.nemesis.stream import StreamProcess
from deploy.stream_process import launched


class SeparateStream(StreamProcess):
    """A stream whose connections have a mark."""

    def start(self) -> None:
        """Start it, without waiting; its log goes on."""
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        self._process = launched(self.config, self.log, in_group(STREAM_GROUP))
