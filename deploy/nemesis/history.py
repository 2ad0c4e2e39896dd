"""The history of a run: every user write, in a file of JSON lines that a killed run leaves whole.

Each write has two lines: `begun` before it is sent, `ended` with its outcome. A write without the
second line has the outcome `unknown`.
"""

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from deploy.nemesis.statement import UserStatement, UserWriteKind
from deploy.nemesis.tables import JsonValue


class UserOutcome(StrEnum):
    """What became of a user's write."""

    OK = "ok"
    FAILED = "failed"
    """It was surely not applied."""
    UNKNOWN = "unknown"
    """It may have been applied, or may still be."""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """How a write ended. `time` is its write time (µs) if a client chose it, else None.

    `attempts` counts the hosts it was sent to: of a counter's update each may have applied it.
    """

    outcome: UserOutcome
    time: int | None = None
    attempts: int = 1
    error: str = ""


@dataclass(frozen=True, slots=True)
class UserWrite:
    """One write of a user. `begun` and `ended` are µs since 1970 by this machine's clock.

    `ended` is None if no answer was recorded.
    """

    number: int
    statement: UserStatement
    begun: int
    ended: int | None
    answer: UserAnswer


NO_ANSWER = UserAnswer(UserOutcome.UNKNOWN)


class UserHistory:
    """Appends to a new file; safe for threads. Raises FileExistsError if the file exists."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("x", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._writes = 0

    def begun(self, statement: UserStatement) -> int:
        """Record that a write is about to be sent; returns its number."""
        told = {name: value for name, value in asdict(statement).items() if value}
        with self._lock:
            self._writes += 1
            number = self._writes
            self._append({"begun": number, "at": _now_us(), **told})
        return number

    def ended(self, number: int, answer: UserAnswer) -> None:
        """Record how a write ended."""
        with self._lock:
            self._append({"ended": number, "at": _now_us(), **asdict(answer)})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, line: dict[str, JsonValue]) -> None:
        self._file.write(json.dumps(line) + "\n")


def read_history(lines: Iterable[str]) -> list[UserWrite]:
    """The writes of a file's lines, in the order in which they began.

    Raises ValueError if a line is not JSON. A last line without an end of line is left out: the
    process was killed while it wrote it.
    """
    begun: dict[int, dict[str, JsonValue]] = {}
    ended: dict[int, dict[str, JsonValue]] = {}
    for line in lines:
        if not line.endswith("\n"):
            continue
        told = json.loads(line)
        if "begun" in told:
            begun[told.pop("begun")] = told
        else:
            ended[told.pop("ended")] = told
    return [_write(number, told, ended.get(number)) for number, told in begun.items()]


def _write(
    number: int, begun: dict[str, JsonValue], ended: dict[str, JsonValue] | None
) -> UserWrite:
    at = begun.pop("at")
    statement = UserStatement(
        **{**begun, "kind": UserWriteKind(begun["kind"]), "key": tuple(begun["key"])}
    )
    if ended is None:
        return UserWrite(number, statement, at, None, NO_ANSWER)
    ended_at = ended.pop("at")
    answer = UserAnswer(**{**ended, "outcome": UserOutcome(ended["outcome"])})
    return UserWrite(number, statement, at, ended_at, answer)


def _now_us() -> int:
    return time.time_ns() // 1000
