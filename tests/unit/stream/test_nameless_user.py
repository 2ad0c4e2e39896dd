"""A user id without a name: Hadoop, which Spark uses for files, would not log it in."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark import SparkConf

from reconcilers.words.errors import Misconfigured
from streaming.pipeline import jvm, needs
from streaming.settings import Settings

NAMELESS = 2_000_123_456
JARS = {"spark.jars": "/jars/a.jar,/jars/b.jar", "spark.driver.extraClassPath": "/more"}


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """What starts a JVM, and the JVM."""
    made = MagicMock()
    made.return_value = made
    monkeypatch.setattr(jvm, "launch_gateway", made)
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    return made


def started(gateway: MagicMock) -> dict[str, str]:
    """The options that the JVM is started with."""
    jvm.launch_jvm(SparkConf(loadDefaults=False).setAll(list(JARS.items())))
    return dict(gateway.call_args.args[0].getAll())


def logins(gateway: MagicMock) -> list[str]:
    """The names that were logged in."""
    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    made = [call.args[0] for call in users.createRemoteUser.call_args_list]
    assert len(made) == users.setLoginUser.call_count
    return made


def become_nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NAMELESS)


def test_a_user_with_a_name_is_left_to_hadoop(gateway: MagicMock) -> None:
    assert started(gateway) == JARS
    assert logins(gateway) == []


@pytest.mark.parametrize(("variable", "name"), [(None, str(NAMELESS)), ("mail", "mail")])
def test_one_without_is_logged_in_before_spark_looks_at_a_file(
    gateway: MagicMock, monkeypatch: pytest.MonkeyPatch, variable: str | None, name: str
) -> None:
    if variable is not None:
        monkeypatch.setenv("HADOOP_USER_NAME", variable)
    become_nameless(monkeypatch)
    assert started(gateway) == {"spark.driver.extraClassPath": "/more:/jars/a.jar:/jars/b.jar"}
    assert logins(gateway) == [name]


@pytest.mark.parametrize("option", [*jvm.FILES, "spark.jars.packages"])
def test_one_without_is_refused_if_spark_has_to_fetch_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str
) -> None:
    (tmp_path / "connector.jar").touch()
    given = {"stream": {"jars": tmp_path}, "spark": {option: "/shared/file"}}
    settings = Settings.model_validate(given)
    needs.refuse_without_spark(settings)
    become_nameless(monkeypatch)
    with pytest.raises(Misconfigured, match=f"name for {option}, and user id {NAMELESS} has none"):
        needs.refuse_without_spark(settings)
