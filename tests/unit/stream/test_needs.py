"""What Spark needs is checked first: a start without it would hold the lease and then crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.needs import connector_jars, refuse_without_spark
from streaming.settings import Settings, StreamSettings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "connector.jar").touch()
    return Settings(stream=StreamSettings(jars=jars))


def java(home: Path, told: str) -> None:
    """A Java that only tells its version."""
    (home / "bin").mkdir()
    (home / "bin" / "java").write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    (home / "bin" / "java").chmod(0o755)


@pytest.mark.parametrize("told", ['openjdk version "17.0.9" 2023-10-17', 'java version "21"'])
def test_a_java_that_runs_spark_is_enough(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    java(tmp_path, told)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refuse_without_spark(settings)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('openjdk version "11.0.21" 2023-10-17', 'says openjdk version "11.0.21"'),
        ('java version "1.8.0_392"', 'says java version "1.8.0_392"'),
        ("", "says no version"),
        (None, "No such file or directory"),
    ],
)
def test_another_java_is_refused_in_one_line(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: str | None,
    said: str,
) -> None:
    if told is not None:
        java(tmp_path, told)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Misconfigured, match="Spark needs Java 17 or newer") as refused:
        refuse_without_spark(settings)
    assert said in str(refused.value)
    assert f"JAVA_HOME is {tmp_path}" in str(refused.value)


def test_without_a_java_home_the_path_is_searched(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Misconfigured, match="JAVA_HOME is not set, so PATH is searched"):
        refuse_without_spark(settings)


def test_the_connector_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"no jars of .* in .*: correct stream\.jars"):
        connector_jars(Settings(stream=StreamSettings(jars=tmp_path)))


def test_a_user_id_without_a_name_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2_000_123_456)
    with pytest.raises(Misconfigured, match="user id 2000123456 has none"):
        refuse_without_spark(settings)
