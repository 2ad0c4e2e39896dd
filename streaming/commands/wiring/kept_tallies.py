"""Selects the tallies to correct. Each is kept in the one table that James writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconcilers.counters.live_table import Choice, shapes_of, without
from reconcilers.declared.family import Family, Schema, bind, tallies_in
from reconcilers.declared.tally import Tally
from streaming.settings import Settings
from streaming.tables import connect
from streaming.tables.live_tables import choice_of

Choose = Callable[[Sequence[Tally]], Choice]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A tally of which several ``shapes`` have a table, and the shape to keep."""

    shapes: tuple[Tally, ...]
    choice: Choice

    @property
    def tables(self) -> str:
        """The names of its tables."""
        return " and ".join(each.table for each in self.shapes)

    def __str__(self) -> str:
        """In a sentence."""
        kept = self.choice.kept
        told = "which James writes is not clear" if kept is None else f"{kept.table} is kept"
        return f"{self.tables} both exist: {told}, {self.choice.why}"


def chosen(families: Sequence[Family], schema: Schema, choose: Choose) -> list[Chosen]:
    """For each tally with two tables, the one to keep. Raises what ``choose`` raises."""
    there = (replace(each, tallies=tallies_in(each, schema)) for each in families)
    found = (shapes for each in there for shapes in shapes_of(each).values())
    return [Chosen(shapes, choose(shapes)) for shapes in found]


def one_table_each(families: Sequence[Family], made: Sequence[Chosen]) -> tuple[Family, ...]:
    """The families without the tables that are not kept."""
    left = [shape for each in made for shape in each.shapes if shape != each.choice.kept]
    return tuple(without(each, left) for each in families)


def kept_tallies(settings: Settings, schema: Schema) -> tuple[Family, ...]:
    """The families of tallies as this cluster has them, each tally in one table.

    A tally is left out if it is unclear which table James writes. Raises `Misconfigured`,
    `Retryable`.
    """
    families = tuple(each for each in settings.families() if each.tallies)
    choose = partial(choice_of, connect(settings.cassandra), settings.cassandra.keyspace)
    made = chosen(families, schema, choose)
    bound = (bind(each, schema) for each in one_table_each(families, made))
    return tuple(each for each in bound if each.tallies)
