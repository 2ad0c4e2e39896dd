"""The two locks: to run the product, and to develop it, with the same versions."""

import re
import tomllib

import pytest

from tests.wheel import ROOT

PIN = re.compile(r"^([a-z0-9-]+)==(\S+) ", re.MULTILINE)


def pins(lock: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / lock).read_text("utf-8")))


@pytest.fixture(scope="module")
def declared() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"run": project["dependencies"], **project["optional-dependencies"]}


def names(of: list[str]) -> set[str]:
    return {re.split(r"[=>]", each)[0].lower().replace("_", "-") for each in of}


def test_the_lock_to_run_is_a_part_of_the_lock_to_develop() -> None:
    assert pins("requirements-run.lock").items() < pins("requirements.lock").items()


def test_the_lock_to_run_has_what_is_needed_and_nothing_to_develop(
    declared: dict[str, list[str]],
) -> None:
    run = pins("requirements-run.lock")
    assert names(declared["run"]) <= run.keys()
    assert not names(declared["dev"]) & run.keys()
    assert names(declared["dev"]) <= pins("requirements.lock").keys()
