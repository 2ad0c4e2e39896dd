"""The unit tests on newer Pythons, with the packages of the lock: ten minutes each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheel import ROOT

VERSIONS = [(3, 12), (3, 13)]
PRESENT = "import sys; sys.exit(sys.version_info[:2] != ({}, {}))"


def interpreter(version: tuple[int, int]) -> str | None:
    """A Python of this version on the path; pyenv has names there that only say what is missing."""
    name = "python{}.{}".format(*version)
    try:
        done = subprocess.run(
            [name, "-c", PRESENT.format(*version)], check=False, capture_output=True
        )
    except FileNotFoundError:
        return None
    return name if done.returncode == 0 else None


@pytest.mark.long(part="pythons")
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_unit_tests_pass(version: tuple[int, int], tmp_path: Path) -> None:
    name = interpreter(version)
    if name is None:
        assert "CI" not in os.environ, "continuous integration has every supported Python"
        pytest.skip("no python{}.{}".format(*version))
    environment = tmp_path / "environment"
    python = environment / "bin" / "python"
    subprocess.run([name, "-m", "venv", str(environment)], check=True)
    lock = ["--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *lock], check=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_supported_pythons_are_declared() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for major, minor in [sys.version_info[:2], *VERSIONS]:
        assert f'"Programming Language :: Python :: {major}.{minor}"' in text
