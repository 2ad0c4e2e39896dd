"""Which tests reach which lines of the product, and how long each takes: measured in one run."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage

from tests.mutants.changes import Mutant
from tests.mutants.scope import TESTS_LEFT_OUT
from tests.mutants.session import (
    BrokenOff,
    Measuring,
    ended_with,
    enter,
    forked,
    module_name,
    run_pytest,
)

QUICK = 1.0
"""Seconds; a slower test is run only for the statements that it runs itself."""
PASSED_OR_FAILED = (0, 1)
SERVERLESS = "not stack and not long and not bench"


@dataclass(frozen=True, slots=True)
class Reach:
    """``seconds`` by test; ``lines`` by file and line: the tests that ran it.

    ``importers``: by file of the product the files that import it, directly.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, frozenset[str]]]
    importers: dict[str, frozenset[str]]
    failed: frozenset[str] = frozenset()
    """Tests that failed without any fault: they can show none."""

    def tests_of(self, mutant: Mutant) -> list[list[str]]:
        """The tests that may notice, in groups to be tried one after the other, fastest first.

        First those that run its statement; then the quick ones that reach its module, for what
        runs once and is kept. What runs at import, a constant, may be used by anybody: then those
        of the modules that import it, then all that are quick.
        """
        first, last = mutant.lines()
        by_line = self.lines.get(mutant.place.file, {})
        near = self._tests(by_line.get(line, frozenset()) for line in range(first, last + 1))
        groups = [near, self._quick(self._tests(by_line.values()))]
        if mutant.place.at_import:
            importing = self.importers.get(mutant.place.file, frozenset())
            beyond = (self._tests(self.lines.get(file, {}).values()) for file in sorted(importing))
            groups += [self._quick(set[str]().union(*beyond)), self._quick(self.seconds)]
        tried = set[str]()
        found = []
        for group in groups:
            if new := group - tried:
                found.append(self._fastest(new))
            tried |= new
        return found

    def _quick(self, tests: Iterable[str]) -> set[str]:
        return {test for test in tests if self.seconds.get(test, 0.0) < QUICK}

    def _tests(self, groups: Iterable[Iterable[str]]) -> set[str]:
        return {test for group in groups for test in group if test}

    def _fastest(self, tests: Iterable[str]) -> list[str]:
        return sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test))


def measure(tree: Path, files: Sequence[str], tests: Sequence[str], into: Path) -> None:
    """Run the fast tests of the copy under coverage, in a child, and keep what came out."""
    child = forked(lambda: _measured(tree, files, tests, into))
    with ended_with({child}):
        _, status = os.waitpid(child, 0)
    if status != 0:
        raise BrokenOff(f"the run of the fast tests broke off: {into.with_suffix('.log')}")


def _measured(tree: Path, files: Sequence[str], tests: Sequence[str], into: Path) -> int:
    enter(tree, into.with_suffix(".log"))
    measured = coverage.Coverage(
        data_file=None, config_file=False, include=[str(tree / file) for file in files]
    )
    plugin = Measuring(measured.switch_context)
    measured.start()
    arguments = [*tests, "-m", SERVERLESS, "--basetemp", str(tree.parent / "measured")]
    arguments += [f"--deselect={test}" for test in TESTS_LEFT_OUT]
    status = run_pytest(tree, arguments, plugin)
    measured.stop()
    data = measured.get_data()
    lines = {file: data.contexts_by_lineno(str(tree / file)) for file in files}
    found = {"status": status, "failed": plugin.failed, "seconds": plugin.seconds, "lines": lines}
    into.write_text(json.dumps(found), encoding="utf-8")
    return 0


def reach_from(measured: Path, tree: Path) -> Reach:
    """What `measure` kept. Raises `BrokenOff` when pytest did not run all tests."""
    found = json.loads(measured.read_text(encoding="utf-8"))
    if found["status"] not in PASSED_OR_FAILED:
        measured.unlink()
        raise BrokenOff(f"pytest ended with {found['status']}: {measured.with_suffix('.log')}")
    failed = frozenset(found["failed"])
    lines = {
        file: {int(line): frozenset(tests) - failed for line, tests in by_line.items()}
        for file, by_line in found["lines"].items()
    }
    seconds = {test: spent for test, spent in found["seconds"].items() if test not in failed}
    return Reach(seconds, lines, _importers(tree, lines), failed)


def _importers(tree: Path, files: Iterable[str]) -> dict[str, frozenset[str]]:
    modules = {module_name(file): file for file in files}
    found: dict[str, set[str]] = {}
    for file in modules.values():
        for node in ast.walk(ast.parse((tree / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                for name in names:
                    if name in modules:
                        found.setdefault(modules[name], set()).add(file)
    return {file: frozenset(importing) for file, importing in found.items()}
