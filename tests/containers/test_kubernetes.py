"""The examples of a Spark cluster on Kubernetes, as far as they can be checked without one."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming import app, settings
from streaming.pipeline.connector import JARS
from streaming.settings import Settings, refuse_unfit_cluster
from tests.containers.test_entrypoints import DEPLOY, run, stand_in

pytestmark = pytest.mark.containers

FILES = ("spark-cluster.yaml", "spark-application.yaml")
EXECUTOR = {
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
    "SPARK_JAVA_OPT_1": "-Dspark.x=a b",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.3",
    "SPARK_EXECUTOR_POD_NAME": "exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_HOME": "/spark",
    "SPARK_CLASSPATH": "/more.jar",
}
"""What Spark sets for an executor's container."""


def documents(name: str) -> dict[str, dict[str, Any]]:
    """The objects of an example, by kind."""
    loaded = yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text("utf-8"))
    return {each["kind"]: each for each in loaded}


def read(name: str, folder: Path) -> Settings:
    """The settings of an example, with the variables that its driver has."""
    file = folder / "reconcile.toml"
    file.write_text(documents(name)["ConfigMap"]["data"]["reconcile.toml"], encoding="utf-8")
    return settings.load(file, {"RECONCILE_CASSANDRA__PASSWORD": "x"})


@pytest.mark.parametrize("name", FILES)
def test_its_settings_are_those_of_a_cluster_and_refused_nothing(name: str, tmp_path: Path) -> None:
    given = read(name, tmp_path)
    assert given.stream.master.startswith("k8s://")
    refuse_unfit_cluster(given, {"PYSPARK_PYTHON": "/usr/local/bin/python3.11"})


def test_executors_find_the_driver_and_kubernetes_removes_them_with_it(tmp_path: Path) -> None:
    objects, options = (
        documents("spark-cluster.yaml"),
        dict(read("spark-cluster.yaml", tmp_path).spark),
    )
    driver, service = objects["StatefulSet"], objects["Service"]
    (container,) = driver["spec"]["template"]["spec"]["containers"]
    pod = f"{driver['metadata']['name']}-0"
    namespace = driver["metadata"]["namespace"]
    assert options["spark.kubernetes.driver.pod.name"] == pod
    host = f"{pod}.{service['metadata']['name']}.{namespace}.svc"
    assert options["spark.driver.host"] == host
    assert driver["spec"]["serviceName"] == service["metadata"]["name"]
    ports = {each["name"]: each["port"] for each in service["spec"]["ports"]}
    assert str(ports["driver"]) == options["spark.driver.port"]
    assert str(ports["blocks"]) == options["spark.driver.blockManager.port"]
    assert options["spark.kubernetes.container.image"] == container["image"]
    assert options["spark.kubernetes.namespace"] == namespace


def test_executors_are_let_through_and_see_the_checkpoint() -> None:
    objects = documents("spark-cluster.yaml")
    data = objects["ConfigMap"]["data"]
    executor = yaml.safe_load(data["executor.yaml"])
    policies = yaml.safe_load_all((DEPLOY / "kubernetes" / "spark-cluster.yaml").read_text("utf-8"))
    chosen = [
        each["spec"]["podSelector"]["matchLabels"]
        for each in policies
        if each["kind"] == "NetworkPolicy"
    ]
    driver = objects["StatefulSet"]["spec"]["template"]
    assert chosen == [driver["metadata"]["labels"], executor["metadata"]["labels"]]
    claim = {"claimName": objects["PersistentVolumeClaim"]["metadata"]["name"]}
    for pod in (driver["spec"], executor["spec"]):
        assert claim in [each.get("persistentVolumeClaim") for each in pod["volumes"]]


def test_an_application_of_the_operator_is_what_the_stream_is(tmp_path: Path) -> None:
    submitted = documents("spark-application.yaml")["SparkApplication"]["spec"]
    assert app.parsed(submitted["arguments"]).config == Path("/etc/reconciler/reconcile.toml")
    assert read("spark-application.yaml", tmp_path).spark == (), "the operator sets them"
    image = (DEPLOY / "spark" / "Dockerfile").read_text("utf-8")
    python = submitted["mainApplicationFile"].split("/")[6]
    assert f"PYSPARK_PYTHON=/usr/local/bin/{python}" in image
    of_driver = documents("spark-cluster.yaml")["StatefulSet"]["spec"]["template"]["spec"]
    assert submitted["image"] == of_driver["containers"][0]["image"]
    for part in ("driver", "executor"):
        assert submitted[part]["env"][-1]["name"] == "RECONCILE_CASSANDRA__PASSWORD"


def test_an_application_of_the_operator_is_submitted_with_the_jars_of_the_image() -> None:
    """The JVM is started before our settings are read."""
    submitted = documents("spark-application.yaml")["SparkApplication"]["spec"]
    folder = "local:///usr/local/share/james-reconciler/jars"
    assert submitted["deps"]["jars"] == [f"{folder}/{each.name}" for each in JARS]


def test_an_executor_has_memory_for_a_python_worker_on_each_core(tmp_path: Path) -> None:
    """Beside the JVM's heap and its own memory; the sizes are those of docs/scale.md."""
    options = dict(read("spark-cluster.yaml", tmp_path).spark)
    executor = documents("spark-application.yaml")["SparkApplication"]["spec"]["executor"]
    assert options["spark.executor.memoryOverhead"] == executor["memoryOverhead"] == "1g"
    for cores in (options["spark.executor.cores"], executor["cores"]):
        assert int(cores) * 280 + 384 <= 1_024


def test_the_image_starts_an_executor_as_spark_asks_for_it(tmp_path: Path) -> None:
    """In a folder that it can write."""
    entrypoint = str(DEPLOY / "spark" / "entrypoint.sh")
    given = {"PATH": stand_in(tmp_path, "java"), "SPARK_LOCAL_DIRS": f"{tmp_path},/elsewhere"}
    done = run([entrypoint, "executor"], EXECUTOR | given)
    where = Path(done.stderr.strip())
    assert (where.parent, where.name[:9]) == (tmp_path, "executor-")
    before, after = done.stdout.split("\norg.apache.spark.scheduler.cluster.k8s.")
    assert before.splitlines() == [
        *("-Xms1024m", "-Xmx1024m", "-Dspark.driver.port=7078", "-Dspark.x=a b"),
        *("-cp", "/more.jar:/opt/spark/conf:/spark/jars/*"),
    ]
    name, *words = after.splitlines()
    assert name == "KubernetesExecutorBackend"
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--app-id": "spark-1",
        "--executor-id": "3",
        "--cores": "2",
        "--hostname": "10.0.0.3",
        "--podName": "exec-3",
        "--resourceProfileId": "0",
    }


def test_the_image_starts_a_driver_that_an_operator_submits(tmp_path: Path) -> None:
    stand_in(tmp_path, "spark-submit")
    given = {"SPARK_HOME": str(tmp_path), "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.2"}
    words = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///app.py", "stream"]
    done = run(
        [str(DEPLOY / "spark" / "entrypoint.sh"), "driver", *words],
        {**given, "PATH": os.environ["PATH"]},
    )
    bound = ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.2"]
    assert done.stdout.splitlines() == [*bound, *words]
