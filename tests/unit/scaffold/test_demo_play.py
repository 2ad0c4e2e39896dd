"""The end of the demo: it waits until rows are quiet and every table is as it must be."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.demo import play
from deploy.demo.play import Play, TooSlowError
from deploy.demo.show import Scene
from deploy.demo.sight import Sight
from deploy.demo.verdict import Exhibits
from deploy.mailserver.ledger import Ledger
from deploy.mailserver.workload import Workload

FINE = Exhibits(entries=[], log=[], standing=[], differences=[])
NOW = 205.0
"""At the deadline: a quick reconciler has ended twenty batches."""
NOT_YET = replace(FINE, breakers={"repairs": "too many"})


@dataclass
class Quick:
    """A reconciler that ends a batch every ten seconds, whenever it is asked."""

    log: Path = Path("reconcile.log")
    batches: Iterator[int] = field(default_factory=lambda: itertools.count(10, 10))
    capture_delay: float = 0.0

    def sight(self) -> Sight | None:
        ended = float(next(self.batches))
        return Sight(last_batch=ended, frontier=ended - 1, capture_delay=self.capture_delay)


@dataclass
class Still:
    """A reconciler that ends no batch any more."""

    seen: Sight
    log: Path = Path("reconcile.log")

    def sight(self) -> Sight | None:
        return self.seen


STANDING = Sight(last_batch=NOW - 1, frontier=NOW - 2)


@dataclass
class Told:
    """A screen that remembers."""

    said: list[str] = field(default_factory=list)
    doing: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, scene: Scene) -> None:
        self.doing.append(scene.doing)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "LOOK_EVERY_S", 0.0)


def a_second_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is twenty looks away, however fast this machine is."""
    seconds = itertools.count()
    clock = SimpleNamespace(
        monotonic=lambda: float(next(seconds)), sleep=lambda _: None, time=lambda: NOW
    )
    monkeypatch.setattr(play, "time", clock)
    monkeypatch.setattr(play, "LONGEST_WAIT_FOR_THE_END_S", 20.0)


def the_end(look: Callable[[], Exhibits], stream: Any) -> tuple[Exhibits, Told]:
    screen = Told()
    played = Play(Workload(), Path(), screen)
    return played._await_the_end(stream, Ledger(), look), screen


def test_it_ends_when_all_is_fine_and_not_before() -> None:
    looks = iter([NOT_YET, NOT_YET, FINE])
    evidence, screen = the_end(lambda: next(looks), Quick())
    assert evidence is FINE
    assert list(looks) == []
    assert screen.doing[-1] == "quiet, but 1 things are not yet as they must be"


def test_nothing_is_judged_before_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    a_second_a_look(monkeypatch)
    looks = iter([NOT_YET])
    evidence, screen = the_end(lambda: next(looks), Still(STANDING))
    assert evidence is NOT_YET
    waiting = "waiting until all that was written has been looked at after"
    assert screen.said[-1].startswith(waiting)


def test_where_the_machine_is_too_slow_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    a_second_a_look(monkeypatch)
    slow = Still(replace(STANDING, capture_delay=95.0))
    with pytest.raises(TooSlowError, match=r"hangs\. a change was captured after 95 s") as told:
        the_end(lambda: NOT_YET, slow)
    assert "batch" not in str(told.value)


def test_what_was_quiet_is_judged_however_slow_it_is_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_second_a_look(monkeypatch)
    evidence, _ = the_end(lambda: NOT_YET, Quick(capture_delay=95.0))
    assert evidence is NOT_YET


def test_it_ends_at_the_deadline_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    a_second_a_look(monkeypatch)
    evidence, screen = the_end(lambda: NOT_YET, Quick())
    assert evidence is NOT_YET
    assert screen.said[-1].startswith("quiet, but 1 things")
