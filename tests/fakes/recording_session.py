"""A driver session that takes down what is asked of it, to ask the same again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from cassandra.cluster import Session


@dataclass
class RecordingSession:
    """Everything goes to the real session; ``asked`` are the statements with their values."""

    session: Session
    asked: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def execute_async(self, statement: Any, values: Any = (), **named: Any) -> Any:
        """Take it down, and ask."""
        self.asked.append((statement, values, named))
        return self.session.execute_async(statement, values, **named)

    def ask_again(self, in_flight: int) -> Iterator[list[Any]]:
        """The rows of each statement, as the driver makes them, with so many in flight."""
        remaining = iter(self.asked)

        def send(some: Iterable[tuple[Any, tuple[Any, ...], dict[str, Any]]]) -> list[Any]:
            return [
                self.session.execute_async(what, values, **named) for what, values, named in some
            ]

        flying = send(islice(remaining, in_flight))
        while flying:
            rows = list(flying.pop(0).result())
            flying += send(islice(remaining, 1))
            yield rows

    def __getattr__(self, name: str) -> Any:
        """Everything else is the session's own."""
        return getattr(self.session, name)
