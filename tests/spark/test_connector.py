"""`reconcile jars` fetches with Spark's own resolver, here from a Maven repository in a folder."""

import shutil
from pathlib import Path

import pytest

from deploy.embedded.jars import folder
from reconcilers.words.errors import Misconfigured, Unreachable
from streaming.pipeline.connector import JARS, Jar, fetch

SETTINGS = """<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers>
    <filesystem name="here" m2compatible="true">
      <artifact pattern="{}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""


class Repository:
    """A Maven repository, and the options by which Spark asks it alone."""

    def __init__(self, root: Path) -> None:
        self.root = root / "repository"
        self.settings = root / "ivysettings.xml"
        self.settings.write_text(SETTINGS.format(self.root), encoding="utf-8")

    @property
    def options(self) -> dict[str, str]:
        return {"spark.jars.ivySettings": str(self.settings), "spark.ui.enabled": "false"}

    def add(self, jar: Jar) -> Path:
        place = self.root / jar.group.replace(".", "/") / jar.artifact / jar.version
        place.mkdir(parents=True)
        return Path(shutil.copy(folder("spark") / jar.name, place / jar.name))


def test_they_are_those_that_the_tests_run_with() -> None:
    assert [each.name for each in JARS if not each.is_in(folder("spark"))] == []


def test_what_is_missing_is_fetched_and_only_if_it_is_the_expected_file(
    quick_spark: None, tmp_path: Path
) -> None:
    repository, into = Repository(tmp_path), tmp_path / "jars"
    *others, last = JARS
    for each in others:
        repository.add(each)
    with pytest.raises(Unreachable, match=rf"^{last.coordinates} was not fetched: .*not found"):
        list(fetch(into, repository.options))
    assert all(each.is_in(into) for each in others)

    wrong = repository.add(last)
    wrong.write_bytes(b"something else")
    with pytest.raises(Misconfigured, match=f"{last.coordinates} is another file"):
        list(fetch(into, repository.options))
    assert sorted(each.name for each in into.iterdir()) == sorted(each.name for each in others)

    shutil.copy(folder("spark") / last.name, wrong)
    assert list(fetch(into, repository.options)) == [last]
    assert all(each.is_in(into) for each in JARS)
    assert not list(fetch(into, {"spark.jars.ivySettings": "nowhere"})), "nothing is missing"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "jars").touch()
    with pytest.raises(Misconfigured, match=f"jars in {tmp_path / 'jars'}: .* exists"):
        list(fetch(tmp_path / "jars", {}))


def test_a_jvm_that_does_not_start_is_told_with_its_innermost_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "host.invalid")
    told = r"^Spark does not start: java.net.UnknownHostException: host.invalid: [^\t]*$"
    with pytest.raises(Misconfigured, match=told):
        list(fetch(tmp_path / "jars", {}))
