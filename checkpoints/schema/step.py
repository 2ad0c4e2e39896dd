"""What a step is: CQL that may be run again, and perhaps rows to copy.

Rules that every step keeps, so that it may be run again, and by two processes at once:

1. A statement is ``CREATE TABLE IF NOT EXISTS`` or ``ALTER TABLE … ADD IF NOT EXISTS column type``,
   each column on a line of its own. Nothing is dropped: what a later step no longer uses stays, and
   is made again where somebody has dropped it.
2. A copy reads and writes rows only, with the rights that the stream has. What it writes carries
   the write time of what it read (``USING TIMESTAMP``): then neither a second copy nor a late one
   replaces what was written since.
3. A step that has been released is not edited. What is wrong with it is put right by the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Columns = dict[str, str]
"""CQL types by column."""


class RowStore(Protocol):
    """What a copy may use of the store; ``$ks`` in CQL stands for the keyspace."""

    def prepare(self, cql: str) -> object:
        """Prepare a statement. Raises `Refused`, `Unreachable`."""

    def rows(self, doing: str, statement: Any, *values: object) -> Iterator[Any]:  # noqa: ANN401
        """Rows of one statement as tuples, page by page."""

    def run(self, doing: str, requests: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        """Send prepared statements with their values; returns when each is acknowledged."""


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One step: its tables and columns first, then its copy, if rows must move.

    ``cql`` holds statements ended by semicolons, with ``$ks`` for the keyspace; a line that begins
    with two dashes is a comment.
    """

    number: int
    name: str
    cql: str
    copy: Callable[[RowStore], None] | None = None

    def __str__(self) -> str:
        """As a message names it."""
        return f"step {self.number} ({self.name})"


def statements(cql: str, keyspace: str) -> Iterator[str]:
    """The statements of a text, one by one, for this keyspace."""
    code = "\n".join(line for line in cql.splitlines() if not line.startswith("--"))
    for statement in code.replace("$ks", keyspace).split(";"):
        if statement.strip():
            yield statement.strip()


def made_by(statement: str) -> tuple[str, Columns]:
    """The table that a statement makes or extends, and the columns that it gives it.

    Raises ValueError for a statement that a step may not have.
    """
    match statement.split():
        case ["CREATE", "TABLE", "IF", "NOT", "EXISTS", table, "(", *_]:
            lines = statement.splitlines()
            pairs = (
                line.strip().rstrip(",").split(maxsplit=1)
                for line in lines
                if line.startswith("    ") and line[4].islower()
            )
            return table.partition(".")[2], dict(pairs)
        case ["ALTER", "TABLE", table, "ADD", "IF", "NOT", "EXISTS", column, *kind]:
            return table.partition(".")[2], {column: " ".join(kind)}
    raise ValueError(f"not a statement of a step: {statement}")


def key_of(statement: str) -> frozenset[str]:
    """The columns of the primary key that a statement gives a table; none if it adds a column."""
    _, _, key = statement.partition("PRIMARY KEY (")
    return frozenset(re.findall(r"\w+", key.partition("\n")[0]))
