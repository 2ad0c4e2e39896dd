"""Where a query's own files lie: a path, or a URI of any of Hadoop's file systems."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.spark_files import CheckpointFolder


@pytest.fixture(params=["path", "file", "viewfs"])
def uri(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """Of ``tmp_path``, as it may be written.

    viewfs, Hadoop's view of other file systems, is the one with a scheme that needs no server.
    """
    context: Any = spark.sparkContext
    mounts = f"mounts-{uuid.uuid4().hex}"  # once seen, Hadoop does not ask again what they are
    link = f"fs.viewfs.mounttable.{mounts}.link./checkpoints"
    context._jsc.hadoopConfiguration().set(link, tmp_path.as_uri())
    viewed = f"viewfs://{mounts}/checkpoints"
    return {"path": str(tmp_path), "file": tmp_path.as_uri(), "viewfs": viewed}[request.param]


def made(folder: Path) -> list[str]:
    """The folders of queries that are there."""
    return sorted(each.name for each in folder.iterdir())


def run_a_query(spark: SparkSession, checkpoint: str, source: Path) -> int:
    """It goes on after what an earlier one with this checkpoint has read; records seen."""
    seen: list[int] = []

    def take(rows: DataFrame, _number: int) -> None:
        seen.append(rows.count())

    query = (
        spark.readStream.schema("value STRING")
        .text(str(source))
        .writeStream.option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .foreachBatch(take)
        .start()
    )
    query.awaitTermination()
    return sum(seen)


def test_a_query_keeps_its_files_there(
    spark: SparkSession, uri: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkpoint = CheckpointFolder(spark, uri).fresh()
    source = tmp_path_factory.mktemp("source")
    (source / "first").write_text("1\n2\n", encoding="utf-8")
    assert checkpoint.startswith(f"{uri}/")
    assert run_a_query(spark, checkpoint, source) == 2
    (source / "second").write_text("3\n", encoding="utf-8")
    assert run_a_query(spark, checkpoint, source) == 1
    assert (tmp_path / checkpoint.rpartition("/")[2] / "commits").is_dir()


def test_the_next_one_is_empty_and_the_last_one_gone(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    (tmp_path / "of-somebody-else").mkdir()
    folder = CheckpointFolder(spark, uri)
    first = folder.fresh().rpartition("/")[2]
    second = folder.fresh().rpartition("/")[2]
    assert first != second
    assert made(tmp_path) == sorted(["of-somebody-else", second])
    assert made(tmp_path / second) == []


def test_an_unknown_file_system_is_said(spark: SparkSession) -> None:
    with pytest.raises(Misconfigured, match=r"stream.checkpoint_dir nowhere://a/b: .*nowhere"):
        CheckpointFolder(spark, "nowhere://a/b").fresh()
