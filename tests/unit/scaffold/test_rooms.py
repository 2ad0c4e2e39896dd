"""The rooms of `streaming`, its commands and `reconcilers`: few, with few arrows and no circle."""

import re
from pathlib import Path

import pytest

from tests import rooms

FOUND = rooms.arrows("streaming")
CORE = rooms.arrows("reconcilers")
COMMANDS = rooms.arrows("streaming.commands")
ARCHITECTURE = Path(__file__).resolve().parents[3] / "ARCHITECTURE.md"
LIMITS = pytest.mark.parametrize(
    ("found", "most_rooms", "most_arrows"),
    [(FOUND, 11, 26), (CORE, 9, 17), (COMMANDS, 9, 13)],
    ids=["streaming", "reconcilers", "commands"],
)


@LIMITS
def test_there_are_few_rooms_and_arrows_and_none_runs_back_up(
    found: rooms.Arrows, most_rooms: int, most_arrows: int
) -> None:
    assert len(found) <= most_rooms, sorted(found)
    assert sum(map(len, found.values())) <= most_arrows, rooms.told(found)
    assert len(rooms.floors(found)) >= 2


@pytest.mark.parametrize("package", ["reconcilers", "streaming/commands"])
def test_every_module_is_in_a_room(package: str) -> None:
    folder = ARCHITECTURE.parent / package
    assert [each.name for each in folder.glob("*.py")] == ["__init__.py"]


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
