"""The folder of Spark's own files, on any file system of Hadoop's. Its content is disposable.

The reconciler reads none of them. A query always begins in an empty folder, after the settled
offsets.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from reconcilers.words.errors import Misconfigured, Unreachable

log = logging.getLogger("reconciler")

PREFIX = "query-"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
BY_RENAMING = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""On a local disk Spark's default starts about 50 processes a batch (readlink, chmod), a quarter of
an idle stream's CPU. Renaming is atomic there, too."""


@dataclass(slots=True)
class CheckpointFolder:
    """The folder of one stream's queries; ``uri`` is a path or ``scheme://…``."""

    spark: SparkSession
    uri: str
    _was_made: bool = False

    def fresh(self) -> str:
        """The URI of a new, empty folder; folders of earlier queries are removed.

        Raises `Misconfigured` if none can be made, `Unreachable` if one could be made before.
        """
        name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        try:
            files, parent = self._file_system()
            if files.getScheme() == "file":
                self.spark.conf.set(MANAGER, BY_RENAMING)
            files.mkdirs(parent)
            for status in files.listStatus(parent):
                if status.getPath().getName().startswith(PREFIX):
                    files.delete(status.getPath(), True)
            files.mkdirs(self._path(f"{self.uri}/{name}"))
        except Py4JJavaError as failed:
            reason = str(failed.java_exception)
            error = Unreachable if self._was_made else Misconfigured
            raise error(f"stream.checkpoint_dir {self.uri}: {reason}") from failed
        self._was_made = True
        return f"{self.uri}/{name}"

    def _file_system(self) -> tuple[Any, Any]:
        context: Any = self.spark.sparkContext
        parent = self._path(self.uri)
        return parent.getFileSystem(context._jsc.hadoopConfiguration()), parent  # noqa: SLF001

    def _path(self, uri: str) -> Any:
        jvm: Any = self.spark.sparkContext._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(uri)
