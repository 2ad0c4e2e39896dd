"""The jars of Spark's Kafka connector, which PySpark does not bring; `reconcile jars` fetches them.

Spark's own resolver fetches them, as for ``spark.jars.packages``: from Maven Central, or from where
``spark.jars.repositories`` or ``spark.jars.ivySettings`` say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from reconcilers.words.errors import Misconfigured, Unreachable
from streaming.pipeline.jvm import need_no_host_name

FOLDER = Path(sys.prefix, "share", "james-reconciler", "jars")
"""Where they are unless ``stream.jars`` is set: in the Python environment of the package."""

CAUSE = "Caused by: "
"""The beginning of a line of a Java stack trace that names an error behind the one before."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of a Maven repository."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """The name in a Maven repository."""
        return f"{self.group}:{self.artifact}:{self.version}"

    def is_in(self, folder: Path) -> bool:
        """Whether the folder has exactly this file."""
        file = folder / self.name
        return file.is_file() and sha256(file.read_bytes()).hexdigest() == self.sha256


JARS = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.1.3",
        "cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.1.0-preview1",
        "ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.1",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.1",
        "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
)
"""The connector of the pinned PySpark, and those jars of its own that PySpark does not have."""


def installed(folder: Path | None) -> list[str]:
    """The paths of the jars: all in the folder of ``stream.jars``, else `JARS` in `FOLDER`.

    Raises `Misconfigured` if there are none, or not all of `JARS`.
    """
    if folder is None:
        missing = [each.name for each in JARS if not (FOLDER / each.name).is_file()]
        if missing:
            raise Misconfigured(
                f"no {missing[0]} of Spark's Kafka connector in {FOLDER}: run `reconcile jars`"
            )
        return [str(FOLDER / each.name) for each in JARS]
    jars = [str(jar) for jar in sorted(folder.resolve().glob("*.jar"))]
    if not jars:
        raise Misconfigured(
            f"no jars of Spark's Kafka connector in {folder.resolve()}: run `reconcile jars`, or"
            " correct stream.jars"
        )
    return jars


def fetch(folder: Path, options: Mapping[str, str]) -> Iterator[Jar]:
    """Fetch those that the folder lacks, with these options of Spark's; yields each.

    Raises `Unreachable` if one is not found, `Misconfigured` if it is another file than expected,
    or if the folder cannot be written.
    """
    missing = [each for each in JARS if not each.is_in(folder)]
    if not missing:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as cache:
            conf = SparkConf().setAll([*options.items(), ("spark.jars.ivy", cache)])
            yield from _fetched(missing, folder, conf)
    except OSError as failed:
        raise Misconfigured(f"jars in {folder}: {failed.strerror} (stream.jars)") from failed


def _fetched(jars: list[Jar], folder: Path, conf: SparkConf) -> Iterator[Jar]:
    with TemporaryFile() as output, _gateway(conf, output) as gateway:
        resolver = gateway.jvm.org.apache.spark.util.DependencyUtils
        for jar in jars:
            uri = gateway.jvm.java.net.URI(f"ivy://{jar.coordinates}?transitive=false")
            try:
                found = Path(resolver.resolveMavenDependencies(uri).mkString(","))
            except Py4JJavaError as failed:
                why = str(failed.java_exception).partition("\n")[0]
                raise Unreachable(f"{jar.coordinates} was not fetched: {why}") from failed
            if sha256(found.read_bytes()).hexdigest() != jar.sha256:
                raise Misconfigured(f"{jar.coordinates} is another file than expected there")
            found.replace(folder / jar.name)
            yield jar


@contextmanager
def _gateway(conf: SparkConf, output: IO[bytes]) -> Iterator[JavaGateway]:
    """A JVM of Spark's without a session. Raises `Misconfigured` if it does not start."""
    need_no_host_name()
    try:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
    except PySparkRuntimeError as failed:
        output.seek(0)
        raise Misconfigured(f"Spark does not start: {_cause(output.read())}") from failed
    try:
        yield gateway
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # it ends then
        gateway.proc.wait()


def _cause(output: bytes) -> str:
    """The innermost error that a JVM wrote, else its last line."""
    told = output.decode(errors="replace").strip().splitlines() or ["no message"]
    causes = [each.removeprefix(CAUSE) for each in told if each.startswith(CAUSE)]
    return [*told, *causes][-1]
