"""Whether an undecoded truth row belongs in a projection, by its declaration. Pure.

A declaration (`Projection.belongs`) reads cells by name. It is called once for each combination of
the cells that it reads. It always reads the same cell first; the next one depends on that value,
and so on. Its answers therefore form a tree, which a few rows of flags complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconcilers.declared.family import Projection
from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.words.model import Row, Value

Decode = Callable[[str, RawCell], Value]
MOST_ANSWERS = 10_000


@dataclass(frozen=True, slots=True)
class _Read:
    at: int
    then: dict[RawCell, _Read | bool] = field(default_factory=dict)


class Belonging:
    """The cached answers of one projection for rows with these truth columns."""

    def __init__(self, projection: Projection, columns: Sequence[str], decode: Decode) -> None:
        self._belongs = projection.belongs
        self._places = {column: at for at, column in enumerate(columns)}
        self._decode = decode
        self._first: _Read | bool | None = None
        self._answers = 0

    def of(self, row: RawRow) -> bool:
        """Whether this row belongs in the projection."""
        node = self._first
        while isinstance(node, _Read):
            node = node.then.get(row[node.at])
        return self._asked(row) if node is None else node

    def _asked(self, row: RawRow) -> bool:
        cells = _Cells(row, self._places, self._decode)
        answer = bool(self._belongs(Row(cells)))
        if self._answers >= MOST_ANSWERS:
            self._first, self._answers = None, 0
        self._answers += 1
        node: _Read | bool = answer
        if not cells.read:
            self._first = node
            return answer
        if self._first is None:
            self._first = _Read(cells.read[0])
        known = self._first
        for at, following in zip(cells.read, cells.read[1:], strict=False):
            assert isinstance(known, _Read)
            known = known.then.setdefault(row[at], _Read(following))
        assert isinstance(known, _Read)
        known.then[row[cells.read[-1]]] = answer
        return answer


class _Cells(Mapping[str, Value]):
    """A raw row by column name; ``read`` has the places that were read, in order."""

    def __init__(self, row: RawRow, places: Mapping[str, int], decode: Decode) -> None:
        self._row, self._places, self._decode = row, places, decode
        self.read: list[int] = []

    def __getitem__(self, column: str) -> Value:
        at = self._places[column]
        if at not in self.read:
            self.read.append(at)
        return self._decode(column, self._row[at])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
