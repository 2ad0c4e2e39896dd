"""One pytest session in a forked child: the tests chosen, in the order chosen.

The parent has imported the libraries, never the product: a child imports that anew, one module of
it from the mutant's syntax tree instead of its file.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

import hypothesis
import pytest

LIBRARIES = (
    "cassandra.cluster",
    "docker",
    "kafka",
    "pandas",
    "prometheus_client",
    "pyarrow.compute",
    "pydantic_settings",
    "pyspark.sql.functions",
    "testcontainers.core.container",
    "yaml",
)
"""What takes long to import; imported once, in the parent."""


class BrokenOff(Exception):
    """A session did not come to its end."""


def warm_up() -> None:
    """Import the libraries, and have random tests run the same cases in every session."""
    for name in LIBRARIES:
        importlib.import_module(name)
    hypothesis.settings.register_profile(
        "mutants",
        database=None,
        derandomize=True,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )
    hypothesis.settings.load_profile("mutants")


@dataclass(slots=True, eq=False)
class Chosen:
    """A plugin of pytest: only these tests, in this order, each with its limit in seconds.

    The process ends with SIGALRM when a limit is passed, also in a loop that never comes back.
    """

    limits: Mapping[str, float]
    failed: Callable[[str], None]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """In the order of ``limits``."""
        by_id = {item.nodeid: item for item in items}
        items[:] = [by_id[nodeid] for nodeid in self.limits if nodeid in by_id]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The clock runs for setup, test and teardown."""
        signal.setitimer(signal.ITIMER_REAL, self.limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of the first test that fails."""
        if report.failed:
            self.failed(report.nodeid)


@dataclass(slots=True, eq=False)
class Measuring:
    """A plugin of pytest: how long each test takes (s), and which one is running."""

    switch: Callable[[str], object]
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Setup and teardown are the test's too."""
        self.switch(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.perf_counter() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What fails without a fault can show none."""
        if report.failed:
            self.failed.append(report.nodeid)


@dataclass(slots=True, eq=False)
class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves one module from code instead of its file."""

    module: str
    path: Path
    code: CodeType

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Of that module only."""
        if fullname != self.module:
            return None
        folder = [str(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the mutant's code as the module."""
        exec(self.code, module.__dict__)


def module_name(file: str) -> str:
    """``streaming/steps/look.py`` → ``streaming.steps.look``."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def forked(work: Callable[[], int]) -> int:
    """Start a child, in a process group of its own, that exits with what the work returns."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            status = work()
        finally:
            os._exit(status)
    os.setpgid(child, child)  # here too: whoever is first
    return child


@contextmanager
def ended_with(children: Iterable[int]) -> Iterator[None]:
    """Kill those children that are left at the end of the context, with all they started."""
    try:
        yield
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)


def enter(tree: Path, log: Path) -> None:
    """Make this process one that runs in a copy of the project; what it prints goes into a log."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # these are the project's own, not the copy's
    os.chdir(tree)
    sys.path[:0] = [str(tree)]
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)


def run_pytest(tree: Path, arguments: Sequence[str], plugin: object) -> int:
    """Run pytest in the copy; its exit status."""
    quiet = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:timeout", "-W", "ignore"]
    # the project's own options name marks and a time limit that stand against these
    own = ["-c", os.devnull, "--rootdir", str(tree), *quiet]
    return int(pytest.main([*own, *arguments], plugins=[plugin]))
