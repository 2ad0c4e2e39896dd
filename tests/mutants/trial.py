"""Trials: each mutant in a child of its own, several at a time, with a limit of time."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import CodeType

from tests.mutants.changes import Key, Mutant
from tests.mutants.reach import Reach
from tests.mutants.session import (
    BrokenOff,
    Chosen,
    MutantFinder,
    ended_with,
    enter,
    forked,
    module_name,
    run_pytest,
)

SLOWER = 5.0
"""A test may take so many times what it took when it was measured …"""
AT_LEAST = 5.0
"""… and this (s): the machine has other work to do."""
IMPORTS = 60.0
"""Seconds for importing the product and collecting the tests."""
FAILED = (1, 2, 4)
"""pytest's exit status when a test failed, when a module could not be imported, or a conftest."""


class Outcome(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "no test reaches it"


LIVED = frozenset({Outcome.SURVIVED, Outcome.UNREACHED})


@dataclass(frozen=True, slots=True)
class Result:
    """One mutant that was tried: ``was`` became ``becomes`` in this function, and its outcome.

    ``killer`` is the first test that failed.
    """

    file: str
    function: str
    line: int
    operator: str
    was: str
    becomes: str
    outcome: Outcome
    killer: str = ""

    @classmethod
    def of(cls, mutant: Mutant, outcome: Outcome, killer: str = "") -> Result:
        """What became of this mutant."""
        place, change = mutant.place, mutant.change
        about = (place.file, place.function, mutant.line, change.operator)
        return cls(*about, *mutant.diff(), outcome, killer)

    @property
    def key(self) -> Key:
        """That of its mutant."""
        return self.file, self.function, self.was, self.becomes


@dataclass(slots=True)
class _Running:
    mutant: Mutant
    pipe: int
    folder: Path


@dataclass(slots=True)
class Trials:
    """Tries mutants in a copy of the project, ``jobs`` at a time."""

    tree: Path
    reach: Reach
    jobs: int

    def run(self, mutants: Iterable[Mutant]) -> Iterator[Result]:
        """What became of each, in the order in which they end. Raises `BrokenOff`."""
        running: dict[int, _Running] = {}
        with ended_with(running):
            for mutant in mutants:
                groups = self.reach.tests_of(mutant)
                if not groups:
                    yield Result.of(mutant, Outcome.UNREACHED)
                    continue
                if len(running) == self.jobs:
                    yield self._ended(running)
                child, started = self._start(mutant, groups)
                running[child] = started
            while running:
                yield self._ended(running)

    def _start(self, mutant: Mutant, groups: list[list[str]]) -> tuple[int, _Running]:
        reading, writing = os.pipe()
        folder = self.tree.parent / "trials" / str(writing)
        code = mutant.code()
        child = forked(lambda: self._session(mutant, code, groups, writing, folder))
        os.close(writing)
        return child, _Running(mutant, reading, folder)

    def _session(
        self, mutant: Mutant, code: CodeType, groups: list[list[str]], pipe: int, folder: Path
    ) -> int:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.dont_write_bytecode = True
        folder.parent.mkdir(exist_ok=True)
        enter(self.tree, folder.with_suffix(".log"))
        finder = MutantFinder(module_name(mutant.place.file), self.tree / mutant.place.file, code)
        sys.meta_path.insert(0, finder)
        status = 0
        for tests in groups:
            signal.setitimer(signal.ITIMER_REAL, IMPORTS)
            plugin = Chosen(self._limits(tests), lambda test: _write(pipe, test))
            files = sorted({test.partition("::")[0] for test in tests})
            status = run_pytest(self.tree, ["-x", "--basetemp", str(folder), *files], plugin)
            if status != 0:
                break
        return status

    def _limits(self, tests: list[str]) -> dict[str, float]:
        measured = self.reach.seconds
        return {test: max(SLOWER * measured.get(test, 0.0), AT_LEAST) for test in tests}

    def _ended(self, running: dict[int, _Running]) -> Result:
        child, status = os.wait()
        ended = running.pop(child)
        with os.fdopen(ended.pipe, encoding="utf-8") as pipe:
            killer = pipe.readline().strip()
        shutil.rmtree(ended.folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            outcome = Outcome.SURVIVED
        elif code in FAILED:
            outcome = Outcome.KILLED
        elif code == -signal.SIGALRM:
            outcome = Outcome.TIMED_OUT
        else:
            said = ended.folder.with_suffix(".log").read_text(errors="replace")[-2_000:]
            raise BrokenOff(f"pytest ended with {code} for {ended.mutant.key()}\n{said}")
        return Result.of(ended.mutant, outcome, killer)


def _write(pipe: int, test: str) -> None:
    os.write(pipe, f"{test}\n".encode())
