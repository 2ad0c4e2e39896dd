"""What is mutated, and what its bar is: the one place to change when rooms move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Part:
    """Some files of the product, by patterns; at most ``bar`` of their mutants may survive.

    ``without`` are patterns of files that are left out, ``functions`` the functions that are, by
    file: they are nothing but calls of servers or of Spark.
    """

    name: str
    bar: float
    files: tuple[str, ...]
    without: tuple[str, ...] = ()
    functions: tuple[tuple[str, str], ...] = ()


WORKER = "streaming/pipeline/worker.py"
FINDINGS = "streaming/commands/person/findings.py"

PARTS = (
    Part("reconcilers", 0.03, ("reconcilers/**/*.py",)),
    Part(
        "checkpoints",
        0.03,
        ("checkpoints/**/*.py",),
        without=("checkpoints/cassandra/**/*.py",),
    ),
    Part(
        "streaming",
        0.10,
        (
            "streaming/steps/**/*.py",
            "streaming/counters/**/*.py",
            "streaming/canary/*.py",
            "streaming/topics/lanes.py",
            "streaming/pipeline/*.py",
            "streaming/monitoring/report.py",
            "streaming/monitoring/lag.py",
            "streaming/monitoring/clocks.py",
            "streaming/monitoring/nodes.py",
            "streaming/commands/person/decisions.py",
            "streaming/commands/arguments/finding_filter.py",
            "streaming/commands/person/findings.py",
            "streaming/commands/person/undo.py",
            "streaming/commands/person/finding_formats.py",
            "streaming/tables/cql.py",
            "streaming/tables/rate_limit.py",
        ),
        without=(
            "streaming/pipeline/envelope.py",
            "streaming/pipeline/event_columns.py",
            "streaming/pipeline/keys.py",
            "streaming/pipeline/query.py",
            "streaming/pipeline/session.py",
            "streaming/pipeline/sources.py",
            "streaming/pipeline/spark_files.py",
            "streaming/pipeline/window.py",
        ),
        functions=(
            (WORKER, "Job.publish"),
            (WORKER, "_keep_undecodable"),
            *(
                (FINDINGS, name)
                for name in ("add_arguments", "_add_decisions", "run", "_mailboxes")
            ),
            ("streaming/commands/arguments/finding_filter.py", "add_filter"),
            *(
                ("streaming/commands/person/undo.py", name)
                for name in ("undo_desk", "_of_counters")
            ),
        ),
    ),
)

TESTS = ("tests/unit", "tests/property", "tests/contract")
"""The fast tests: of these, whatever needs no server and is not marked as long or a measurement."""

TESTS_LEFT_OUT = (
    "tests/unit/scaffold/test_house.py",
    "tests/unit/scaffold/test_limits.py",
    "tests/property/test_races.py::test_many_interleavings_keep_the_promises_and_meet_everything",
)
"""The first read source and settings and run nothing of the product, the last takes minutes."""


def files_of(part: Part, root: Path) -> Iterator[str]:
    """The part's files, as paths relative to the project, in a stable order."""
    found = {path for pattern in part.files for path in root.glob(pattern)}
    found -= {path for pattern in part.without for path in root.glob(pattern)}
    yield from sorted(path.relative_to(root).as_posix() for path in found)


def part_of(file: str) -> str:
    """The name of the part that a file belongs to: its first folder."""
    return file.partition("/")[0]


def left_out(part: Part, file: str, function: str) -> bool:
    """Whether a function (its qualified name), or one around it, is left out."""
    return any(
        file == where and (function == name or function.startswith(f"{name}."))
        for where, name in part.functions
    )
