"""What an embedded Spark cluster is made of: executors' Python, the code that is sent to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploy.embedded.spark_cluster import SparkCluster, code_zip, interpreter_without_project

ASKED = """
from importlib.util import find_spec
print([name for name in ("cassandra", "pyarrow", "reconcilers", "deploy") if find_spec(name)])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interpreter_without_project(tmp_path_factory.mktemp("python"))


def asked(python: Path, path: str, there: Path) -> str:
    """Which of the packages this Python finds, with this PYTHONPATH."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), "-c", ASKED],
        cwd=there,
        env=given | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_executors_have_our_packages_and_not_the_project(python: Path, tmp_path: Path) -> None:
    assert asked(python, "", tmp_path) == "['cassandra', 'pyarrow']"
    assert interpreter_without_project(python.parent.parent) == python, "it is made once"


def test_the_code_that_is_sent_is_what_is_named(python: Path, tmp_path: Path) -> None:
    code = code_zip(tmp_path / "code.zip", ["reconcilers"])
    assert asked(python, str(code), tmp_path) == "['cassandra', 'pyarrow', 'reconcilers']"


def test_workers_have_addresses_of_their_own_at_one_master(tmp_path: Path) -> None:
    cluster = SparkCluster(tmp_path)
    assert [each.host for each in cluster.workers] == ["127.0.0.2", "127.0.0.3"]
    assert cluster.url.startswith("spark://127.0.0.1:")
    command = cluster.command("org.apache.spark.deploy.master.Master", "--port", "1")
    spark_class = next(each for each in command if each.endswith("/bin/spark-class"))
    assert os.access(spark_class, os.X_OK)
    assert command[command.index("PYTHONPATH") - 1] == "-u"
