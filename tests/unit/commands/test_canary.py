"""``reconcile canary``: the table that it needs, and how canaries begin anew."""

from __future__ import annotations

from argparse import Namespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from checkpoints.bookmarks import Bookmark
from reconcilers.words.errors import AlreadyRunning, Misconfigured
from streaming.commands.running import canary
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import MetricsSettings, Mode, Settings
from tests.builders.canaries import reached
from tests.fakes.checkpoints.progress import MemoryBookmarks

SETTINGS = Settings(metrics=MetricsSettings(port=0, canary_port=0, sweep_port=0))
TABLE = {
    "place": "text",
    "lane": "int",
    "idle_us": "bigint",
    "written_ms": "bigint",
    "partitions": "int",
}


class Keeper:
    """Takes down what it is asked for."""

    def __init__(self) -> None:
        self.anew: list[int] = []
        self.ran = 0
        self.fails: Exception | None = None

    def begin_anew(self, highest: int) -> None:
        if self.fails is not None:
            raise self.fails
        self.anew.append(highest)

    def run(self, _stop: object) -> None:
        self.ran += 1


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> Keeper:
    """Of an installation whose two streams have heard numbers 7 and 9, each in one lane."""
    made, bookmarks = Keeper(), MemoryBookmarks()
    for number, mode in ((7, Mode.REPAIR), (9, Mode.OBSERVE)):
        stream = StreamNames.of(SETTINGS, mode).bookmarks(SETTINGS.families()[0])
        bookmarks.record(Bookmark(stream, {}, heard={("n1", "james", 0): reached(number)}))
    replaced: dict[str, Any] = {
        "keeper": lambda settings, store, metrics=None: made,
        "make_own": MagicMock(),
        "CassandraBookmarks": lambda store: bookmarks,
        "connect": MagicMock(),
        "schema_of": lambda session, keyspace: {"canary": TABLE},
        "run_canaries": lambda settings, write, threads: write(threads.stop),
    }
    for name, instead in replaced.items():
        monkeypatch.setattr(canary, name, instead)
    return made


def run(begin_anew: bool = False) -> int:
    return canary.run(SETTINGS, Namespace(begin_anew=begin_anew))


def test_it_writes_canaries_until_it_is_stopped(keeper: Keeper) -> None:
    assert run() == 0
    assert (keeper.ran, keeper.anew) == (1, [])


def test_canaries_begin_anew_above_what_any_stream_has_heard(
    keeper: Keeper, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(begin_anew=True) == 0
    assert (keeper.ran, keeper.anew) == (0, [9])
    assert "canaries restart" in capsys.readouterr().out


def test_while_others_are_written_that_is_refused(keeper: Keeper) -> None:
    keeper.fails = AlreadyRunning("another process holds the lease")
    with pytest.raises(AlreadyRunning):
        run(begin_anew=True)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "there is no table reconciler_canary.canary"),
        (
            {"canary": {"place": "text"}},
            "canary lacks the columns idle_us, written_ms, partitions",
        ),
    ],
)
@pytest.mark.usefixtures("keeper")
def test_without_a_table_of_this_version_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, schema: object, said: str
) -> None:
    monkeypatch.setattr(canary, "schema_of", lambda session, keyspace: schema)
    with pytest.raises(Misconfigured, match=f"{said}.*doctor --fix"):
        run()
    assert not canary.has_table(SETTINGS)
