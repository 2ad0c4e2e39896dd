"""The product's session under `spark-submit`, on a cluster whose executors lack the project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.jars import ROOT
from deploy.embedded.settings_file import Sections, as_toml
from deploy.embedded.spark_cluster import SparkCluster, spark_home
from streaming.pipeline.needs import connector_jars
from streaming.settings import Settings
from tests.stack.spark_looks import PACKAGES

pytestmark = [pytest.mark.stack, pytest.mark.long(part="cluster")]

DRIVER = Path(__file__).with_name("submitted.py")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def sections(cluster: SparkCluster) -> Sections:
    made = cluster.settings_for(PACKAGES)
    made["stream"]["temp_dir"] = str(cluster.folder / "temporary")
    made["stream"]["jars"] = str(Path(".jars/spark").resolve())
    return made


def submitted(cluster: SparkCluster, sections: Sections, *options: str) -> Any:
    """What the driver says that was submitted with these options."""
    file = cluster.folder / "reconcile.toml"
    file.write_text(as_toml(sections), encoding="utf-8")
    python = f"spark.pyspark.driver.python={sys.executable}"
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url]
    done = subprocess.run(
        [*command, "--conf", python, *options, str(DRIVER), str(file)],
        cwd=cluster.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_executors_have_the_code_and_the_driver_has_its_jars(
    cluster: SparkCluster, sections: Sections
) -> None:
    code = str(sections["spark"]["spark.submit.pyFiles"])
    jars = ",".join(connector_jars(Settings.model_validate(sections)))
    options = ("--py-files", code, "--jars", jars, "--driver-java-options", "-Xss16m")
    told = submitted(cluster, sections, *options)
    assert told == {
        "whole project": False,
        "code": ["./code.zip/reconcilers/__init__.py"],
        "hosts": [each.host for each in cluster.workers],
        "kafka": ["key", "value"],
        "scheduler": "FAIR",
    }


def test_without_the_code_it_does_not_start(cluster: SparkCluster, sections: Sections) -> None:
    code = sections["spark"]["spark.submit.pyFiles"]
    told = submitted(cluster, sections)
    assert told == f"spark-submit was started without --py-files {code}"
