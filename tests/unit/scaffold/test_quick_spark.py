"""When the classes of Spark are kept, and what a JVM is told of them."""

import shlex
from pathlib import Path

import pytest

from deploy import quick_spark
from deploy.quick_spark import environment, keep

WRITES = (
    "import os, re; "
    "name = re.search('ArchiveClassesAtExit=([^ ]+)', os.environ['SPARK_SUBMIT_OPTS'])[1]; "
    "open(name, 'w').write('classes')"
)
WRITES_NOTHING = "pass"
FAILS = "raise SystemExit('no such thing')"


def test_what_is_kept_is_not_kept_again(tmp_path: Path) -> None:
    classes = tmp_path / "classes.jsa"
    assert keep(classes, WRITES)
    assert classes.read_text() == "classes"
    assert keep(classes, FAILS)


@pytest.mark.parametrize("kept", [True, False])
def test_classes_of_other_jars_do_not_stay_whether_new_ones_are_kept_or_not(
    tmp_path: Path, kept: bool
) -> None:
    classes = tmp_path / "classes.jsa"
    classes.write_text("old")
    classes.with_suffix(".sha256").write_text("of other jars")
    assert keep(classes, WRITES if kept else FAILS) is kept
    assert (classes.read_text() if classes.exists() else None) == ("classes" if kept else None)


def test_where_it_fails_a_warning_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not keep(tmp_path / "classes.jsa", FAILS)
    assert "no such thing" in caplog.text
    assert not (tmp_path / "classes.jsa").exists()


def test_what_a_run_before_has_left_is_not_taken_for_classes(tmp_path: Path) -> None:
    (tmp_path / "classes.new").write_text("half of them")
    assert not keep(tmp_path / "classes.jsa", WRITES_NOTHING)
    assert not (tmp_path / "classes.jsa").exists()


def test_a_folder_may_have_a_space_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes the options apart as a shell would."""
    classes = tmp_path / "my mail" / "classes.jsa"
    classes.parent.mkdir()
    classes.touch()
    monkeypatch.setattr(quick_spark, "CLASSES", classes)
    assert f"-XX:SharedArchiveFile={classes}" in shlex.split(environment()["SPARK_SUBMIT_OPTS"])


def test_a_jvm_is_told_of_classes_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = tmp_path / "classes.jsa"
    monkeypatch.setattr(quick_spark, "CLASSES", classes)
    assert "SharedArchiveFile" not in environment()["SPARK_SUBMIT_OPTS"]
    classes.touch()
    assert f"-XX:SharedArchiveFile={classes}" in environment()["SPARK_SUBMIT_OPTS"]
