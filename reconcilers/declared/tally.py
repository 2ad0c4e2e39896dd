"""A tally (counters that sum up a truth), and the values of counting. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from reconcilers.words.errors import NotGuarded
from reconcilers.words.model import NEVER_WRITTEN


class Sum(StrEnum):
    """The quantity that is summed up over messages."""

    COUNT = "count"
    UNSEEN = "unseen"
    SIZE = "size"


Sums = Mapping[Sum, int]
"""A number for each sum; SIZE in octets."""
NOTHING: Sums = {Sum.COUNT: 0, Sum.UNSEEN: 0, Sum.SIZE: 0}


@dataclass(frozen=True, slots=True)
class Cell:
    """One counter: its column, and the rest of its row's key if each sum has its own row."""

    column: str
    row: Mapping[str, str] = field(default_factory=dict)


def as_it_is(key: UUID | str) -> UUID | str:
    """Return our own key, for a row of James's that is named by it."""
    return key


@dataclass(frozen=True, slots=True)
class Tally:
    """Counters by ``key``, each cell a sum over the messages that belong there.

    ``per_quota_root``: there is a row for each quota root, otherwise for each mailbox.
    ``may_create_row``: a correction may create a missing row. ``row_key`` maps our key to James's
    value of ``key``. Raises `NotGuarded` if the table is a truth table (promise 1).
    """

    name: str
    table: str
    key: str
    cells: Mapping[Sum, Cell]
    per_quota_root: bool = False
    may_create_row: bool = False
    row_key: Callable[[UUID | str], UUID | str] = as_it_is

    def __post_init__(self) -> None:
        if self.table in NEVER_WRITTEN:
            raise NotGuarded(f"tally {self.name} names the truth table {self.table}")

    @property
    def columns(self) -> frozenset[str]:
        """All columns that its table must have."""
        named = {each.column for each in self.cells.values()}
        return frozenset({self.key, *named, *(name for c in self.cells.values() for name in c.row)})

    def row_of(self, key: UUID | str) -> str:
        """The row's name for a person if James's key differs from ours; else empty."""
        named = self.row_key(key)
        return "" if named == key else f"{self.key} {named} of {self.table}"


def total(parts: list[Sums]) -> Sums:
    """The sums of several mailboxes, or of several chunks of one."""
    return {each: sum(part[each] for part in parts) for each in Sum}


@dataclass(frozen=True, slots=True)
class Listed:
    """A message of a mailbox; ``size`` in octets."""

    uid: int
    messageid: UUID
    seen: bool
    size: int


UidRange = tuple[int, int]
"""The first and the last UID of some messages."""


@dataclass(frozen=True, slots=True)
class QuotaRoot:
    """A user in a namespace, with a quota. ``str`` is our key: James's `QuotaRoot.getValue()`."""

    namespace: str
    user: str

    @classmethod
    def of(cls, text: str) -> QuotaRoot:
        """The quota root of a key of either of James's tables; one of them has the domain twice."""
        namespace, _, user = text.partition("&")
        once, _, domain = user.rpartition("@")
        return cls(namespace, once if domain and once.endswith(f"@{domain}") else user)

    @property
    def with_domain_again(self) -> str:
        """James's `QuotaRoot.asString()`: the value, then the domain again if there is one."""
        _, _, domain = self.user.partition("@")
        return f"{self}@{domain}" if domain else str(self)

    def __str__(self) -> str:
        return f"{self.namespace}&{self.user}"


def summed(messages: Iterable[Listed]) -> Sums:
    """Count, unseen and size of these messages."""
    count = unseen = size = 0
    for each in messages:
        count, unseen, size = count + 1, unseen + (not each.seen), size + each.size
    return {Sum.COUNT: count, Sum.UNSEEN: unseen, Sum.SIZE: size}


def by_chunk(messages: Iterable[Listed], chunk_size: int) -> dict[int, Sums]:
    """The sums by chunk of UIDs, for chunks with messages. It stores no message."""
    chunks: dict[int, Sums] = {}
    for each in messages:
        number = each.uid // chunk_size
        chunks[number] = total([chunks.get(number, NOTHING), summed([each])])
    return chunks


def together(some: Mapping[int, Sums], others: Mapping[int, Sums]) -> dict[int, Sums]:
    """The sums by chunk of two parts of a count."""
    added = {
        each: total([some[each], sums]) if each in some else sums for each, sums in others.items()
    }
    return {**some, **added}
