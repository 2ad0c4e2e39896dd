"""The exit codes, which are the same for every command (docs/exit-codes.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """The result of a command, for a person, a script or a supervisor."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    REFUSED = 3
    UNREACHABLE = 4
    START_AGAIN = 5
    DEFECT = 70
    INTERRUPTED = 130
    NOBODY_READS = 141
    TERMINATED = 143


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.PROBLEMS: "problems were found, or something is left to do",
    ExitCode.USAGE: "a wrong argument, setting or table",
    ExitCode.REFUSED: "refused: by the lease, a guard, or a server",
    ExitCode.UNREACHABLE: "a server does not answer: start again later",
    ExitCode.START_AGAIN: "the process ended itself: start again",
    ExitCode.DEFECT: "a defect of the reconciler",
    ExitCode.INTERRUPTED: "ended by SIGINT",
    ExitCode.NOBODY_READS: "nobody reads the output",
    ExitCode.TERMINATED: "ended by SIGTERM",
}
