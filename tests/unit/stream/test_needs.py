"""What Spark needs is checked first: a start without it would hold the lease and then crash."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pyspark
import pytest

from reconcilers.words.errors import Misconfigured
from streaming.pipeline import connector
from streaming.pipeline.connector import JARS, Jar
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
    with pytest.raises(Misconfigured, match=r"no jars of .* in .*: run .* correct stream\.jars"):
        connector_jars(Settings(stream=StreamSettings(jars=tmp_path)))


def test_without_a_setting_they_are_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly those of this version: another version's stay there after an upgrade."""
    monkeypatch.setattr(connector, "FOLDER", tmp_path)
    *others, last = JARS
    for each in (*(each.name for each in others), "spark-sql-kafka-0-10_2.13-4.0.0.jar"):
        (tmp_path / each).touch()
    with pytest.raises(Misconfigured, match=f"no {last.name} of .* in {tmp_path}: run `recon"):
        connector_jars(Settings())
    (tmp_path / last.name).touch()
    assert connector_jars(Settings()) == [str(tmp_path / each.name) for each in JARS]


def test_the_connector_is_that_of_the_pinned_spark() -> None:
    assert {each.version for each in JARS if "sql" in each.artifact} == {pyspark.__version__}


def test_a_jar_that_is_another_file_is_missing(tmp_path: Path) -> None:
    jar = Jar("g", "a", "1", sha256(b"this").hexdigest())
    assert jar.coordinates == "g:a:1"
    for content in (None, b"", b"this", b"that"):
        if content is not None:
            (tmp_path / "a-1.jar").write_bytes(content)
        assert jar.is_in(tmp_path) is (content == b"this")
