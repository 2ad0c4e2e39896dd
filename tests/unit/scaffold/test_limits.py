"""Limits are there for hangs only: no test depends on how fast the machine is."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from deploy.embedded.wait import HANG_S

TESTS = Path(__file__).resolve().parents[2]


def test_a_wait_that_hangs_is_told_before_the_limit_of_its_test(
    pytestconfig: pytest.Config,
) -> None:
    assert float(pytestconfig.getini("timeout")) >= 1.5 * HANG_S


def test_no_test_has_a_limit_of_its_own() -> None:
    mark = "mark." + "timeout"
    own = [path for path in TESTS.rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    assert own == [TESTS / "conftest.py"]


def test_an_example_of_hypothesis_may_take_its_time() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
