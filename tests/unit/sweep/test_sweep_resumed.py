"""`reconcile sweep --resume`: which sweep goes on, and what is told of it at its begin."""

from argparse import Namespace
from types import SimpleNamespace

import pytest

from checkpoints.sweeps import SweepRecord
from reconcilers.words.errors import Misconfigured
from streaming.again.sweep import SweepMark
from streaming.commands.again.sweep import record_of
from streaming.settings import Settings
from tests.builders.rows import DELAY, FAMILY, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.sweeps import MemorySweeps

LEFT = SweepRecord(NOW, "alice", "a test", FAMILY.names, 16)
RESUME = Namespace(resume=True)


def resumed(memory_began: int, systems: tuple[str, ...] = FAMILY.names) -> SweepRecord:
    """With one that is left, and a memory that began so many seconds after it."""
    sweeps, lineage = MemorySweeps(), MemoryLineage(lambda: NOW + memory_began * SECOND)
    lineage.watch_from(NOW + memory_began * SECOND)
    sweeps.begin(SweepRecord(NOW, "alice", "a test", systems, 16))
    made = SimpleNamespace(sweeps=sweeps, mark=SweepMark(lineage, DELAY))
    return record_of(Settings(), RESUME, made, FAMILY)  # type: ignore[arg-type]


def test_the_last_one_goes_on_and_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert resumed(-3_600) == LEFT
    assert capsys.readouterr() == ("", "")


def test_after_a_loss_it_goes_on_and_says_that_memory_will_not_be_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert resumed(60) == LEFT
    assert (
        "it will not make lineage complete: lineage was reset, or a loss" in capsys.readouterr().err
    )


def test_one_of_other_systems_is_not_gone_on_with() -> None:
    with pytest.raises(Misconfigured, match="compares --systems messages,other"):
        resumed(-3_600, (*FAMILY.names, "other"))
