"""`reconcile sweep --resume`: which sweeps go on, and what is told of them at their begin."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

import pytest

from checkpoints.sweeps import SweepRecord
from reconcilers.words.errors import Misconfigured, Refused
from streaming.again.mark import Marking, NoMark, SweepMark
from streaming.again.sweep_result import SweepResult
from streaming.commands.again.asked_sweeps import TO_GO_ON, AskedSweeps, to_begin, to_resume
from tests.builders.rights import FROM_EVENTS
from tests.builders.rows import DELAY, FAMILY, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.sweeps import MemorySweeps

LEFT = SweepRecord(NOW, "alice", "a test", FAMILY.names, 16)
ENDED = replace(LEFT, ended_at=NOW + SECOND)
OF_RIGHTS = replace(LEFT, began_at=NOW + 2 * SECOND, systems=FROM_EVENTS.names)
ASKED = Namespace(reason="a test", who="alice")
BOTH = [FAMILY, FROM_EVENTS]


class Made:
    """A sweeper whose sweep ends at once, as ``ends`` says."""

    def __init__(self, mark: Marking, ends: Refused | None = None) -> None:
        self.family, self.sweeps, self.mark, self.ends = FAMILY, MemorySweeps(), mark, ends
        self.run_of: list[SweepRecord] = []

    def run(self, sweep: SweepRecord) -> SweepResult:
        self.run_of.append(sweep)
        if self.ends is not None:
            raise self.ends
        return SweepResult(5, 0, whole="every row was compared")


def run(made: Made, left: SweepRecord | None) -> AskedSweeps:
    asked = AskedSweeps(ASKED, lambda _: None, lambda _: 2_000)
    asked.run(made, left)  # type: ignore[arg-type]
    return asked


def mark(memory_began: int) -> SweepMark:
    """Of a memory that began so many seconds after the sweep that is left."""
    lineage = MemoryLineage(lambda: NOW + memory_began * SECOND)
    lineage.watch_from(NOW + memory_began * SECOND)
    return SweepMark(lineage, DELAY)


def test_the_last_one_goes_on_and_its_result_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    made = Made(mark(-3_600))
    run(made, LEFT)
    assert made.run_of == [LEFT]
    told = "message: 5 rows were compared, 0 suspects found\nevery row was compared\n"
    assert capsys.readouterr() == (told, "")


def test_after_a_loss_it_goes_on_and_says_that_memory_will_not_be_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(Made(mark(60)), LEFT)
    assert (
        "it will not make lineage complete: lineage was reset, or a loss" in capsys.readouterr().err
    )


def test_a_new_one_is_recorded_with_the_systems_of_its_family() -> None:
    made = Made(NoMark())
    run(made, None)
    assert made.run_of == list(made.sweeps.all())
    told = [(each.systems, each.who, each.ranges) for each in made.run_of]
    assert told == [(FAMILY.names, "alice", 2_000)]


def test_one_that_is_refused_holds_up_no_other_and_is_the_end_of_the_command() -> None:
    asked = run(Made(NoMark(), Refused("no SELECT permission")), None)
    asked.run(Made(NoMark()), None)  # type: ignore[arg-type]
    assert len(asked.ended) == 1
    assert asked.to_go_on(2) == TO_GO_ON
    with pytest.raises(Refused, match="no SELECT permission"):
        asked.raise_failure()


def test_without_resume_each_family_is_swept_anew() -> None:
    assert to_begin(BOTH) == {"message": None, "rights": None}


RESUMED: Mapping[str, tuple[list[SweepRecord], dict[str, SweepRecord | None]]] = {
    "killed in the first: the second follows": ([LEFT], {"message": LEFT, "rights": None}),
    "the first was refused, the second has ended": (
        [replace(OF_RIGHTS, ended_at=NOW + 3 * SECOND), LEFT],
        {"message": LEFT},
    ),
    "killed in the second": ([OF_RIGHTS, ENDED], {"rights": OF_RIGHTS}),
    "both are left": ([OF_RIGHTS, LEFT], {"message": LEFT, "rights": OF_RIGHTS}),
    "the second was swept before only": (
        [LEFT, replace(OF_RIGHTS, began_at=NOW - SECOND, ended_at=NOW)],
        {"message": LEFT, "rights": None},
    ),
}


@pytest.mark.parametrize("case", RESUMED)
def test_what_is_left_goes_on_and_what_was_to_follow_begins(case: str) -> None:
    known, todo = RESUMED[case]
    assert to_resume(known, BOTH) == todo


def test_one_of_other_systems_is_not_gone_on_with() -> None:
    left = replace(LEFT, systems=(*FAMILY.names, "other"))
    with pytest.raises(Misconfigured, match="compares --systems messages,other"):
        to_resume([left], BOTH)


def test_where_none_is_left_it_says_so() -> None:
    with pytest.raises(Misconfigured, match="begin one without --resume"):
        to_resume([ENDED], BOTH)
