"""A stream from the wheel, of a user id without name or home that can write in one folder only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.stack.conftest import Scenes
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import Stream
from tests.wheel import NAMELESS, Installed, installed, sealed

pytestmark = [
    pytest.mark.stack,
    pytest.mark.long(part="servers"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root may be another user"),
]
FORGOTTEN = ("env", "-u", "PYTHONPATH", "-u", "HOME")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may enter: Java asks for that, whatever its capabilities are."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def environment(wheel: Installed, place: Path) -> Installed:
    return installed(wheel.wheel, place / "environment")


@pytest.fixture(scope="module")
def scene(scenes: Scenes, environment: Installed, place: Path) -> Iterator[Scene]:
    """One whose stream is run from the wheel."""
    writable = place / "writable"

    def stream_of(config: Path) -> Stream:
        writable.mkdir()
        os.chown(writable, NAMELESS, NAMELESS)
        text, own = config.read_text(encoding="utf-8"), place / config.name
        own.write_text(text.replace(str(config.parent), str(writable)), encoding="utf-8")
        program = (*FORGOTTEN, *sealed(NAMELESS, writable), str(environment.reconcile))
        return Stream(own, program=program)

    yield from scenes({}, stream_of)


def test_a_stream_from_the_wheel_repairs(scene: Scene, environment: Installed) -> None:
    running = Path(f"/proc/{scene.stream.session}")
    assert str(environment.python) in (running / "cmdline").read_text(encoding="utf-8")
    assert running.stat().st_uid == NAMELESS
    missing, behind = Place(), Place()
    scene.write_truth(missing, cells())
    scene.leave_behind(behind)
    for each in (missing, behind):
        scene.await_verified(each.row)
        assert scene.agrees(each)
