"""Conversions of cells that a truth and a projection store in different forms. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reconcilers.words.model import Row, Value


@dataclass(frozen=True, slots=True)
class Conversion:
    """Two functions between a cell of the truth and the projection's cell for it.

    ``back`` undoes ``forth``: ``back(forth(x)) == x`` for each cell ``x`` of the truth. It accepts
    every cell of the projection, null included; two cells are equal if it returns one value.
    """

    forth: Callable[[Value], Value]
    back: Callable[[Value], Value]


Conversions = Mapping[str, Conversion]
"""Conversions by column; every other column has one form."""


def as_copied(conversions: Conversions, truth: Row) -> Row:
    """A truth row with its cells in the projection's form."""
    return _converted(truth, {column: each.forth for column, each in conversions.items()})


def as_in_truth(conversions: Conversions, copy: Row) -> Row:
    """A projection's row with its cells in the truth's form."""
    return _converted(copy, {column: each.back for column, each in conversions.items()})


def _converted(row: Row, by: Mapping[str, Callable[[Value], Value]]) -> Row:
    if not by:
        return row
    cells = {column: convert(row.get(column)) for column, convert in by.items()}
    return replace(row, cells={**row.cells, **cells})


def in_order(letters: Value) -> Value:
    """A set of letters as one text, in alphabetical order."""
    return "".join(sorted(letters)) if isinstance(letters, frozenset) else letters


def as_set(text: Value) -> Value:
    """The letters of a text, in any order; no letters for null."""
    return frozenset(text or "") if text is None or isinstance(text, str) else text


LETTERS = Conversion(forth=in_order, back=as_set)
"""A set of one-letter texts in the truth, one text in the projection."""
