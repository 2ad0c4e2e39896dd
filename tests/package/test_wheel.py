"""The wheel has the product alone, and runs where it finds nothing else of the project."""

import os
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from deploy.embedded.jars import folder
from tests.wheel import NAMELESS, NOBODY, PACKAGES, ROOT, Installed, sealed

PRODUCT = {"reconcilers", "checkpoints", "streaming"}
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root may be another user")


def test_the_wheel_has_all_of_the_product_and_nothing_else(wheel: Installed) -> None:
    with zipfile.ZipFile(wheel.wheel) as packed:
        names = {each for each in packed.namelist() if ".dist-info/" not in each}
    ours = {
        str(each.relative_to(ROOT))
        for package in PRODUCT
        for each in (ROOT / package).rglob("*")
        if each.is_file() and "__pycache__" not in each.parts and each.suffix != ".md"
    }
    assert names == ours
    assert set(PACKAGES) > PRODUCT, "the copy that it is built from has more"


def test_its_metadata_says_what_it_needs_and_what_it_is(wheel: Installed) -> None:
    (found,) = metadata.distributions(name="james-reconciler", path=[str(wheel.site)])
    told = found.metadata
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Author"]
    assert told["Keywords"]
    assert str(told.json["description"]).startswith("# Reconciler for Apache James")
    assert {str(each) for each in found.files or ()} >= {"streaming/pipeline/log4j2.properties"}
    licenses = {each.name for each in found.files or () if "licenses" in each.parts}
    assert licenses == {"LICENSE", "NOTICE"}


def test_it_runs_from_an_empty_folder(wheel: Installed, tmp_path: Path) -> None:
    assert wheel.run(wheel.reconcile, "--version").stdout == "reconcile 0.2.0\n"
    config = tmp_path / "reconcile.toml"
    config.write_text('[stream]\nmaster = "local[1]"\n')
    told = wheel.run(wheel.reconcile, "config", "check", "--config", config).stdout
    assert told == f"{config}: nothing is wrong\n"
    config.write_text(wheel.run(wheel.reconcile, "config", "example").stdout)
    wheel.run(wheel.reconcile, "config", "check", "--config", config)
    assert not [*(wheel.folder / "empty").iterdir()], "it leaves nothing where it is run"


def test_it_imports_nothing_that_is_not_in_it(wheel: Installed) -> None:
    """Each module of the product; `deploy` and `tests` are not there."""
    ours, where = wheel.run(wheel.python, "-c", WALK, *sorted(PRODUCT)).stdout.splitlines()
    assert ours == "0"
    assert where.startswith(str(wheel.site))


def test_the_folders_that_it_uses_do_not_depend_on_where_it_is_run(wheel: Installed) -> None:
    shown = wheel.run(wheel.reconcile, "config", "show").stdout
    assert '"/var/lib/reconciler/checkpoint"' in shown
    failed = wheel.run(wheel.python, "-c", WITHOUT_JARS, check=False)
    jars = wheel.folder / "share" / "james-reconciler" / "jars"
    assert f"of Spark's Kafka connector in {jars}: run `reconcile jars`" in failed.stderr


WALK = """
import sys
from importlib import import_module
from pkgutil import walk_packages
for name in sys.argv[1:]:
    for each in walk_packages(import_module(name).__path__, f"{name}."):
        import_module(each.name)
print(len([each for each in sys.modules if each.startswith(("deploy", "tests"))]))
print(import_module("streaming.app").__file__)
"""
WITHOUT_JARS = """
from streaming.pipeline.needs import refuse_without_spark
from streaming.settings import Settings
refuse_without_spark(Settings())
"""


@AS_ROOT
@pytest.mark.parametrize("words", [("--version",), ("config", "check"), ("jars", "--list")])
def test_it_runs_sealed_off(wheel: Installed, words: tuple[str, ...]) -> None:
    """A user id without a name, no home, all read-only."""
    done = wheel.run(wheel.reconcile, *words, prefix=sealed(NAMELESS), check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout


@AS_ROOT
@pytest.mark.parametrize("user", [NOBODY, NAMELESS])
def test_spark_and_its_workers_start_sealed_off(
    wheel: Installed, quick_spark: None, tmp_path: Path, user: int
) -> None:
    """Temporary files of all of them are below the one folder that can be written."""
    os.chown(tmp_path, user, user)
    where = {"CHECKPOINT_DIR": str(tmp_path), "JARS": str(folder("spark"))}
    given = [f"RECONCILE_STREAM__{name}={value}" for name, value in where.items()]
    given.append(f"SPARK_SUBMIT_OPTS={os.environ['SPARK_SUBMIT_OPTS']}")
    prefix = ("env", *given, *sealed(user, tmp_path))
    done = wheel.run(wheel.python, "-c", WORKING, prefix=prefix, check=False)
    assert done.returncode == 0, done.stderr
    *_, of_the_worker, of_the_driver = done.stdout.splitlines()
    assert of_the_worker == of_the_driver
    assert Path(of_the_driver).parent == tmp_path / "temporary"


WORKING = """
import os
import tempfile
from streaming.pipeline.session import spark_session
from streaming.settings import load

session = spark_session(load(None))
print(*session.sparkContext.parallelize([1], 1).map(lambda _: tempfile.gettempdir()).collect())
print(tempfile.gettempdir())
"""
