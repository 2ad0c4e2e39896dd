"""How many token ranges a new sweep has: the setting's, or as many as the table's size asks for."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.words.errors import Unreachable
from streaming.commands.wiring import sweeper
from streaming.commands.wiring.sweeper import ranges_of
from streaming.settings import Settings


class Estimates:
    """A cluster with an estimate of the truth, or none."""

    def __init__(self, partitions: int | None) -> None:
        self.partitions = partitions

    def estimated_partitions(self, keyspace: str, table: str) -> int:
        assert (keyspace, table) == ("apache_james", "imapuidtable")
        if self.partitions is None:
            raise Unreachable("no answer of 10.0.0.3")
        return self.partitions


def ranges(monkeypatch: pytest.MonkeyPatch, partitions: int | None, sweep: dict[str, Any]) -> int:
    monkeypatch.setattr(sweeper, "connect", lambda _settings: Estimates(partitions))
    monkeypatch.setattr(sweeper, "Cluster", lambda session: session)
    return ranges_of(Settings.model_validate({"sweep": sweep}), MESSAGE)


def test_they_follow_from_the_estimated_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranges(monkeypatch, 1_000, {}) == 512
    assert ranges(monkeypatch, 100_000_000, {}) == 2_000
    assert ranges(monkeypatch, 100_000_000, {"rows_per_second": 20_000}) == 1_000


def test_the_setting_overrides_it_and_asks_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranges(monkeypatch, None, {"ranges": 7}) == 7


def test_without_an_answer_there_are_the_fewest_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert ranges(monkeypatch, None, {}) == 512
    (line,) = caplog.messages
    assert line == "a sweep has 512 ranges a table: no estimate of its size: no answer of 10.0.0.3"
