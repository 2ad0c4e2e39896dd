"""The extra ``worker`` names what executors import: they need no other package."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
OURS = {"reconcilers", "checkpoints", "streaming"}
TASKS = (
    "streaming.again.on_executors",
    "streaming.again.replay",
    "streaming.again.scan",
    "streaming.commands.wiring.workers",
    "streaming.pipeline.record_search",
    "streaming.pipeline.repair_task",
    "streaming.pipeline.worker",
)
"""Whose functions and classes Spark pickles by name, and so executors import."""
OF_SPARK = {"pyspark", "py4j"}
"""In the folder of Spark on each host."""
ASKED_BY_SPARK = {"pandas"}
"""PySpark's worker imports it to read Arrow's batches."""
OF_PYDANTIC = {"annotated-types", "pydantic-core"}
"""Its own parts, in the versions that it asks for."""

IMPORTED = """
import importlib, json, sys
others, tasks, ours = map(set, json.loads(sys.argv[1]))
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in others:
            raise ModuleNotFoundError(f"{name} is not in the extra", name=name)
sys.meta_path.insert(0, Without())
for each in tasks:
    importlib.import_module(each)
files = (m.__file__ for n, m in list(sys.modules.items()) if n.partition(".")[0] in ours)
print(json.dumps(sorted(file for file in files if file)))
"""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


@pytest.fixture(scope="module")
def extra(project: dict[str, Any]) -> list[str]:
    return list(project["optional-dependencies"]["worker"])


def named(requirement: str) -> str:
    """The name of a distribution in a requirement, as it is compared."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found[0].lower().replace("_", "-")


def with_all_it_needs(names: set[str]) -> set[str]:
    """These distributions, and those that they need in turn."""
    found, left = set[str](), set(names)
    while left:
        name = left.pop()
        found.add(name)
        needed = (each for each in distribution(name).requires or () if "extra ==" not in each)
        left |= {named(each) for each in needed if _is_there(named(each))} - found
    return found


def _is_there(name: str) -> bool:
    return any(name in map(named, each) for each in packages_distributions().values())


def imported(file: Path) -> Iterator[str]:
    """The first name of each import of a file, also of those in functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                yield from (each.name.partition(".")[0] for each in node.names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]


@pytest.fixture(scope="module")
def shipped(extra: list[str]) -> list[Path]:
    """Our files that executors import, with nothing but the packages of the extra."""
    there = with_all_it_needs({named(each) for each in extra})
    others = {
        package
        for package, names in packages_distributions().items()
        if not there & set(map(named, names))
    }
    asked = json.dumps([sorted(others - OF_SPARK - OURS), TASKS, sorted(OURS)])
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, asked],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Path(each) for each in json.loads(done.stdout.splitlines()[-1])]


def test_executors_import_what_the_extra_names(extra: list[str], shipped: list[Path]) -> None:
    direct = {name for file in shipped for name in imported(file)}
    packages = direct - sys.stdlib_module_names - OURS - OF_SPARK
    names = {named(each) for package in packages for each in packages_distributions()[package]}
    assert (names - OF_PYDANTIC) | ASKED_BY_SPARK == {named(each) for each in extra}


def test_it_is_what_the_product_needs(project: dict[str, Any], extra: list[str]) -> None:
    assert set(extra) < set(project["dependencies"])
