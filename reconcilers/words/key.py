"""The columns of a family's key: names, CQL types, and labels for sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote
from uuid import UUID

from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import KeyValue, Slot

UUIDS = frozenset({"uuid", "timeuuid"})
TIMED = frozenset({"timeuuid"})
"""The UUID types of which Cassandra accepts version 1 only."""
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint", "varint"})
TEXTS = frozenset({"text", "ascii", "varchar"})

WHOLE_TABLE = Slot()
"""The slot of a finding about a whole table. It is no row: it is never looked at or published."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key: its name, its CQL type, and its ``label`` in sentences.

    Every value contains ``mark``; a text without it is a typing error. ``spelling`` maps a text
    that has several spellings to ours. Raises `Misconfigured` unless the type is a UUID, integer or
    text.
    """

    name: str
    type: str
    label: str
    mark: str = ""
    spelling: Callable[[str], str] = str

    def __post_init__(self) -> None:
        if self.type not in UUIDS | INTEGERS | TEXTS:
            raise Misconfigured(f"key column {self.name}: no key of ours is of type {self.type}")

    @property
    def plural(self) -> str:
        """The plural of the label."""
        return f"{self.label}{'es' if self.label.endswith('x') else 's'}"

    @property
    def own_type(self) -> str:
        """The CQL type in our own tables, which accept a UUID of any version."""
        if self.type in UUIDS:
            return "uuid"
        return "bigint" if self.type in INTEGERS else "text"

    @property
    def none_named(self) -> KeyValue:
        """The value in our own tables for a part that an event did not name. No row has it."""
        if self.type in UUIDS:
            return UUID(int=0)
        return -1 if self.type in INTEGERS else ""

    @property
    def of_no_row(self) -> KeyValue:
        """A value that Cassandra accepts for this column and that no row of James has."""
        if self.type in TIMED:
            return UUID(int=0x1000 << 64 | 1 << 63)
        return self.none_named or "\0"

    def of_no_row_numbered(self, number: int) -> KeyValue:
        """One value for each number from 0 that no row of James has; none is `of_no_row`."""
        if self.type in UUIDS:
            return UUID(int=1 + number)
        return -2 - number if self.type in INTEGERS else f"\0{number}"

    def value(self, text: object) -> KeyValue:
        """The value of a JSON value or of a person's text. Raises ValueError."""
        if self.type in UUIDS:
            return UUID(str(text))
        return int(str(text)) if self.type in INTEGERS else self.spelling(str(text))


def as_json(value: KeyValue | None) -> str | int | None:
    """A part of a key as a JSON value. A UUID becomes its text."""
    return str(value) if isinstance(value, UUID) else value


def named(
    columns: Sequence[KeyColumn], values: Sequence[KeyValue | None]
) -> dict[str, str | int | None]:
    """The values by column name, as JSON; None for values missing at the end."""
    missing = len(columns) - len(values)
    return {
        column.name: as_json(value)
        for column, value in zip(columns, (*values, *[None] * missing), strict=True)
    }


def slot_of(columns: Iterable[KeyColumn], fields: Mapping[str, object]) -> Slot:
    """The slot of a mapping made by `named`, up to the first null. Raises ValueError."""
    key = []
    for column in columns:
        value = fields[column.name]
        if value is None:
            break
        key.append(column.value(value))
    return Slot(*key)


def text_of(slot: Slot) -> str:
    """A slot as operators read and type it: its parts joined by slashes; empty for a table."""
    return "/".join(_quoted(str(part)) for part in slot.key)


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("/", "%2F").replace("\0", "%00") or "%"


def slot_from_text(columns: Sequence[KeyColumn], text: str) -> Slot:
    """The slot of a text made by `text_of`. Raises ValueError if it does not fit the columns."""
    parts = text.split("/")
    if len(parts) != len(columns) or not all(parts):
        raise ValueError(f"{text!r} is not {shape(columns)}")
    plain = ["" if part == "%" else unquote(part) for part in parts]
    if any(column.mark not in part for column, part in zip(columns, plain, strict=True)):
        raise ValueError(f"{text!r} is not {shape(columns)}")
    return Slot(*(column.value(part) for column, part in zip(columns, plain, strict=True)))


def shape(columns: Iterable[KeyColumn]) -> str:
    """The form of a key, for people: ``MAILBOXID/UID``."""
    return "/".join(column.name.upper() for column in columns)
