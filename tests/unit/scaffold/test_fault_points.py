"""The points at which the stack's tests kill a driver exist in the product."""

import inspect
from importlib import import_module

import pytest

from tests.stack.test_faults_driver import MAIN_POINTS, MORE_POINTS


@pytest.mark.parametrize("point", [*MAIN_POINTS, *MORE_POINTS])
def test_a_point_is_a_method_of_the_product(point: str) -> None:
    when, _, name = point.partition(" ")
    module, _, path = name.partition(":")
    owner, method = path.split(".")
    assert when in {"before", "after"}
    assert inspect.isfunction(vars(getattr(import_module(module), owner))[method])
