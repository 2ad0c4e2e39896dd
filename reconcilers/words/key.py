"""A family's key as it is declared: names, CQL types, and the words that sentences have for them.

The engine knows slots and sources; what they are called, and of which type they are, is said here
once for records, for JSON, for our own tables and for operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote
from uuid import UUID

from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import KeyValue, Slot

UUIDS = frozenset({"uuid", "timeuuid"})
TIMED = frozenset({"timeuuid"})
"""Of those, what Cassandra takes of version 1 only."""
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint", "varint"})
TEXTS = frozenset({"text", "ascii", "varchar"})

WHOLE_TABLE = Slot()
"""Where the finding of a table stands. It is no row: nobody looks at it, or publishes it."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key: its name, its CQL type, and what a sentence calls it.

    ``mark`` is what each of its texts has in it: so what somebody mistyped is not taken for one.
    ``spelling`` gives the spelling that we use of a text that can be written in several ways.
    Raises `Misconfigured` for a type that is neither a UUID, nor an integer, nor text.
    """

    name: str
    type: str
    label: str
    mark: str = ""
    spelling: Callable[[str], str] = str

    def __post_init__(self) -> None:
        """Refuse what has no text form."""
        if self.type not in UUIDS | INTEGERS | TEXTS:
            raise Misconfigured(f"key column {self.name}: no key of ours is of type {self.type}")

    @property
    def plural(self) -> str:
        """What a sentence calls several."""
        return f"{self.label}{'es' if self.label.endswith('x') else 's'}"

    @property
    def own_type(self) -> str:
        """The type in our own tables: any UUID is taken, whatever its version."""
        if self.type in UUIDS:
            return "uuid"
        return "bigint" if self.type in INTEGERS else "text"

    @property
    def none_named(self) -> KeyValue:
        """Stands in our own tables for a part that an event did not name: no row has it."""
        if self.type in UUIDS:
            return UUID(int=0)
        return -1 if self.type in INTEGERS else ""

    @property
    def of_no_row(self) -> KeyValue:
        """A value that Cassandra takes for this column, and that no row of James has."""
        if self.type in TIMED:
            return UUID(int=0x1000 << 64 | 1 << 63)
        return self.none_named or "\0"

    def of_no_row_numbered(self, number: int) -> KeyValue:
        """The same, one for each number from 0 on, and none of them `of_no_row`."""
        if self.type in UUIDS:
            return UUID(int=1 + number)
        return -2 - number if self.type in INTEGERS else f"\0{number}"

    def value(self, text: object) -> KeyValue:
        """The value that JSON or a person's text stands for. Raises ValueError."""
        if self.type in UUIDS:
            return UUID(str(text))
        return int(str(text)) if self.type in INTEGERS else self.spelling(str(text))


def as_json(value: KeyValue | None) -> str | int | None:
    """A part of a key as JSON has it: a UUID by its text."""
    return str(value) if isinstance(value, UUID) else value


def named(
    columns: Sequence[KeyColumn], values: Sequence[KeyValue | None]
) -> dict[str, str | int | None]:
    """The values by the names of their columns, as JSON; None for those that are not there."""
    missing = len(columns) - len(values)
    return {
        column.name: as_json(value)
        for column, value in zip(columns, (*values, *[None] * missing), strict=True)
    }


def slot_of(columns: Iterable[KeyColumn], fields: Mapping[str, object]) -> Slot:
    """The slot that `named` wrote; where a part is null it ends. Raises ValueError."""
    key = []
    for column in columns:
        value = fields[column.name]
        if value is None:
            break
        key.append(column.value(value))
    return Slot(*key)


def text_of(slot: Slot) -> str:
    """A slot as operators read and type it: its parts with a slash between, none for a table."""
    return "/".join(_quoted(str(part)) for part in slot.key)


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F") or "%"


def slot_from_text(columns: Sequence[KeyColumn], text: str) -> Slot:
    """The slot that `text_of` wrote. Raises ValueError when it is not of these columns."""
    parts = text.split("/")
    if len(parts) != len(columns) or not all(parts):
        raise ValueError(f"{text!r} is not {shape(columns)}")
    plain = ["" if part == "%" else unquote(part) for part in parts]
    if any(column.mark not in part for column, part in zip(columns, plain, strict=True)):
        raise ValueError(f"{text!r} is not {shape(columns)}")
    return Slot(*(column.value(part) for column, part in zip(columns, plain, strict=True)))


def shape(columns: Iterable[KeyColumn]) -> str:
    """How a key is written, for people: ``MAILBOXID/UID``."""
    return "/".join(column.name.upper() for column in columns)
