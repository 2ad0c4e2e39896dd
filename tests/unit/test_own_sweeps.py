"""The thread of a stream's own sweeps: what fails ends no later one."""

from __future__ import annotations

from threading import Event
from unittest.mock import Mock, patch

import pytest

from reconcilers.errors import Unreachable
from streaming.commands.sweeping import OwnSweeps


class Stop(Event):
    """Comes after so many pauses, none of which takes time."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.left = pauses

    def wait(self, timeout: float | None = None) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), Unreachable("no broker")])
def test_whatever_fails_it_looks_again_and_keeps_its_one_client(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Mock()
    sweeps = OwnSweeps(Mock(), Mock(), watcher)
    with patch.object(OwnSweeps, "_sweep_if_due", side_effect=failure) as tried:
        sweeps.run(Stop(10))
    assert tried.call_count > 3
    assert str(failure) in caplog.text
    assert watcher.close.call_count == 1
