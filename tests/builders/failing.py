"""Calls that get no answer."""

from __future__ import annotations

from typing import NoReturn

from reconcilers.words.errors import Unreachable


def unreachable(*_: object) -> NoReturn:
    """Fail as while no server answers."""
    raise Unreachable("no host answered")
