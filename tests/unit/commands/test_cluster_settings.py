"""What a Spark cluster needs of the settings, and what of them is sent to its executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.cloudpickle import dumps

from reconcilers.words.errors import Misconfigured
from streaming.again.scan import Scanning, sweep_task
from streaming.commands.wiring import workers
from streaming.pipeline.repair_task import repair_task
from streaming.pipeline.session import ON_A_CLUSTER, ON_THIS_HOST, options_of
from streaming.pipeline.worker import Job, look_task
from streaming.settings import (
    FIXED,
    PASSWORD,
    Settings,
    costs_on_cluster,
    load,
    refuse_unfit_cluster,
)
from tests.builders.rows import FAMILY

PYTHON = {"PYSPARK_PYTHON": "/opt/reconciler/bin/python"}
FAR: dict[str, dict[str, Any]] = {
    "stream": {"master": "spark://m:7077", "checkpoint_dir": "hdfs://names/reconciler"},
    "cassandra": {"hosts": ["10.0.0.1"]},
    "kafka": {"bootstrap_servers": "k1:9092,k2:9092"},
    "spark": {"spark.authenticate": True},
}
"""A cluster that is refused nothing."""
SECRET = "correct horse battery"


def settings(**sections: dict[str, Any]) -> Settings:
    """Those of the cluster, with these differences."""
    changed = {name: FAR.get(name, {}) | differs for name, differs in sections.items()}
    return Settings.model_validate(FAR | changed)


def refused(given: Settings, environment: dict[str, str] = PYTHON) -> str:
    with pytest.raises(Misconfigured) as refusal:
        refuse_unfit_cluster(given, environment)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


# --- what is refused


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"cassandra": {"hosts": ["10.0.0.1", "127.0.0.2"]}}, "cassandra.hosts has 127.0.0.2: ea"),
        ({"cassandra": {"hosts": ["::1"]}}, "cassandra.hosts has ::1"),
        ({"kafka": {"bootstrap_servers": "k1:9092,localhost:9092"}}, "_servers has localhost: e"),
        ({"kafka": {"bootstrap_servers": "[::1]:9092"}}, "kafka.bootstrap_servers has [::1]"),
        ({"stream": {"checkpoint_dir": "checkpoint"}}, "checkpoint_dir checkpoint is no URI of a"),
        ({"stream": {"checkpoint_dir": "/mnt/shared"}}, "or set stream.checkpoint_shared"),
        ({"stream": {"checkpoint_dir": "file:///mnt"}}, "stream.checkpoint_dir file:///mnt is no"),
        ({"spark": {"spark.authenticate": False}}, "spark.authenticate is not true"),
    ],
)
def test_what_works_on_one_host_only_is_refused(sections: dict[str, Any], says: str) -> None:
    line = refused(settings(**sections))
    assert line.startswith("not on spark://m:7077: ")
    assert says in line


def test_the_executors_python_must_be_named() -> None:
    assert "set PYSPARK_PYTHON or spark.pyspark.python" in refused(settings(), {})
    named = {"spark.authenticate": True, "spark.pyspark.python": "/opt/python"}
    refuse_unfit_cluster(settings(spark=named), {})


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"stream": {"checkpoint_dir": "/mnt/shared", "checkpoint_shared": True}},
        {"stream": {"checkpoint_dir": "/var/own", "checkpoint_shared": False}},
        {"stream": {"master": "yarn"}, "spark": {"spark.authenticate": False}},
        {"stream": {"master": "k8s://https://10.0.0.9:443"}, "spark": {}},
    ],
)
def test_what_works_on_a_cluster_is_taken(sections: dict[str, Any]) -> None:
    refuse_unfit_cluster(settings(**sections), PYTHON)


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077"])
def test_on_one_host_loopback_addresses_and_folders_are_right(master: str) -> None:
    given = Settings.model_validate({"stream": {"master": master}})
    refuse_unfit_cluster(given, PYTHON)
    assert not list(costs_on_cluster(given))


def test_a_folder_of_each_host_is_taken_with_its_cost() -> None:
    own = {"checkpoint_dir": "/var/own", "checkpoint_shared": False}
    (line,) = costs_on_cluster(settings(stream=own))
    assert "when an executor is lost, changes that wait, wait again for 50 s (D + W)" in line
    assert not list(costs_on_cluster(settings()))


# --- the table [spark]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spark.speculation": True}, "spark.speculation cannot be true: two attempts"),
        (
            {"spark": {"dynamicAllocation": {"enabled": "true"}}},
            "cannot be true: each new executor",
        ),
        ({"spark.master": "yarn"}, "spark.master cannot be yarn: set stream.master"),
        ({"spark.submit.deployMode": "cluster"}, "the driver is the process of `reconcile stream`"),
        ({"spark.sql.adaptive.enabled": True}, "the reconciler needs false"),
        ({"executor.memory": "2g"}, "executor.memory is no option of Spark's"),
        ({"spark.executor.cores": [1]}, "spark.executor.cores is no text, number, true or false"),
    ],
)
def test_an_option_that_would_break_the_stream_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("[", r"\[")):
        Settings.model_validate({"spark": given})


def test_options_are_taken_as_they_are_typed(tmp_path: Any) -> None:
    file = tmp_path / "reconcile.toml"
    file.write_text('[spark]\nspark.executor.cores = 2\n"spark.ui.enabled" = true\n')
    assert load(file, {}).spark == (("spark.executor.cores", "2"), ("spark.ui.enabled", "true"))


@pytest.fixture
def with_jars(tmp_path: Any) -> Callable[..., dict[str, str]]:
    """The options of Spark for settings whose files lie in a folder of the test's."""
    (tmp_path / "connector.jar").touch()

    def made(stream: dict[str, Any], spark: dict[str, Any]) -> dict[str, str]:
        places = {"jars": str(tmp_path), "temp_dir": str(tmp_path / "temporary")}
        return options_of(Settings.model_validate({"stream": stream | places, "spark": spark}))

    return made


def test_on_a_cluster_host_and_times_are_not_those_of_one_host(with_jars: Any) -> None:
    here, there = with_jars({}, {}), with_jars({"master": "spark://m:7077"}, {})
    assert here.items() >= {**ON_THIS_HOST, **FIXED, "spark.master": "local[2]"}.items()
    assert there.items() >= {**ON_A_CLUSTER, **FIXED, "spark.master": "spark://m:7077"}.items()
    assert not here.keys() & ON_A_CLUSTER.keys()
    assert not there.keys() & ON_THIS_HOST.keys()
    assert here["spark.jars"] == there["spark.jars"], "the driver serves them to executors"


def test_an_option_that_is_given_comes_before_ours(with_jars: Any) -> None:
    given = {
        "spark.driver.memory": "3g",
        "spark.network.timeout": "90s",
        "spark.jars.packages": "a:b:c",
        "spark.driver.extraJavaOptions": "-Dtheirs=1",
    }
    options = with_jars({"master": "yarn"}, given)
    java = "spark.driver.extraJavaOptions"
    assert {**given, java: options[java]}.items() <= options.items()
    assert options[java].startswith("-Xss16m ")
    assert options[java].endswith(" -Dtheirs=1")
    assert "spark.jars" not in options


# --- what is sent to executors


def jobs() -> list[tuple[str, object]]:
    cassandra = {"username": "reconciler", "password": SECRET, "jmx_password": SECRET}
    secret = {"spark.authenticate.secret": SECRET}
    given = Settings.model_validate({"cassandra": cassandra, "spark": secret})
    job = workers.job(given, FAMILY, "suspects")
    nothing: Any = None
    return [
        ("look", look_task(job)),
        ("repair", repair_task(job, "slice")),
        ("sweep", sweep_task(Scanning(job, workers.scans, workers.past, nothing, nothing))),
    ]


@pytest.mark.parametrize(("name", "task"), jobs(), ids=lambda each: str(each)[:6])
def test_no_secret_travels_with_a_task(
    name: str, task: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = dumps(task)
    assert b"reconciler" in sent
    assert SECRET.encode() not in sent, name
    monkeypatch.setenv(PASSWORD, "of this host")
    arrived: Any = pickle.loads(sent)
    of = arrived.args[0]
    job = of if isinstance(of, Job) else of.job
    assert job.settings.cassandra.password == "of this host"
    assert job.settings.cassandra.jmx_password is None
    assert job.settings.spark == ()


def test_settings_that_are_copied_keep_their_secrets() -> None:
    given = Settings.model_validate({"cassandra": {"password": SECRET}})
    assert given.model_copy(update={}).cassandra.password == SECRET
    assert SECRET not in repr(given)
