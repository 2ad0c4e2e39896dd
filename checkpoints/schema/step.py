"""A schema step: CQL that may be repeated, and possibly rows to copy. Pure.

Every step follows these rules, so that it may be repeated, and run by two processes at once:

1. A statement is ``CREATE TABLE IF NOT EXISTS`` or ``ALTER TABLE … ADD IF NOT EXISTS column type``,
   with each column on its own line. Nothing is dropped: a table that a later step no longer uses
   stays, and is recreated if somebody drops it.
2. A copy reads and writes rows only, with the rights of the stream. It writes with the write time
   of what it read (``USING TIMESTAMP``), so a repeated or late copy replaces no newer write.
3. A released step is not edited. The next step corrects its errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Columns = dict[str, str]
"""The CQL types by column."""


class RowStore(Protocol):
    """The part of the store that a copy may use; ``$ks`` in CQL stands for the keyspace."""

    def prepare(self, cql: str) -> object:
        """Prepare a statement. Raises `Refused`, `Unreachable`."""

    def rows(self, doing: str, statement: Any, *values: object) -> Iterator[Any]:  # noqa: ANN401
        """The rows of one statement as tuples, page by page."""

    def run(self, doing: str, requests: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        """Send prepared statements with their values; return when each is acknowledged."""


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """One step: its tables and columns first, then its copy, if rows must move.

    ``cql`` has statements ended by semicolons, with ``$ks`` for the keyspace. A line that begins
    with two dashes is a comment.
    """

    number: int
    name: str
    cql: str
    copy: Callable[[RowStore], None] | None = None

    def __str__(self) -> str:
        return f"step {self.number} ({self.name})"


def statements(cql: str, keyspace: str) -> Iterator[str]:
    """The statements of a text, one by one, for this keyspace."""
    code = "\n".join(line for line in cql.splitlines() if not line.startswith("--"))
    for statement in code.replace("$ks", keyspace).split(";"):
        if statement.strip():
            yield statement.strip()


def made_by(statement: str) -> tuple[str, Columns]:
    """The table and columns that a statement adds. Raises ValueError if a step may not have it."""
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
    """The primary key columns of a CREATE statement; empty for one that adds a column."""
    _, _, key = statement.partition("PRIMARY KEY (")
    return frozenset(re.findall(r"\w+", key.partition("\n")[0]))
