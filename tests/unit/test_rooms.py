"""`streaming` has few rooms, few arrows, and none of them runs back up."""

import re
from pathlib import Path

import pytest

from tests import rooms

ROOMS = 12
ARROWS = 27
FOUND = rooms.arrows()
ARCHITECTURE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"


def test_there_are_few_rooms() -> None:
    assert len(FOUND) <= ROOMS, sorted(FOUND)


def test_there_are_few_arrows() -> None:
    assert sum(map(len, FOUND.values())) <= ARROWS, rooms.told(FOUND)


def test_no_arrow_runs_back_up() -> None:
    assert len(rooms.floors(FOUND)) >= 2


def test_steps_import_nothing_else_of_streaming() -> None:
    assert FOUND["streaming.steps"] == set()


def test_a_circle_is_found() -> None:
    with pytest.raises(ValueError, match="a circle among a, b"):
        rooms.floors({"a": {"b"}, "b": {"a"}, "c": set()})


def test_the_figure_shows_no_arrow_that_is_not_there() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert drawn
    missing = [
        (room, imported)
        for room, imported in drawn
        if f"streaming.{imported}" not in FOUND[f"streaming.{room}"]
    ]
    assert not missing
