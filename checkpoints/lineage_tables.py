"""The names and columns of a family's lineage tables, derived from its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconcilers.declared.family import Family
from reconcilers.words.key import KeyColumn

DELETES_KEPT_SECONDS = 90 * 24 * 3600


@dataclass(frozen=True, slots=True)
class LineageTables:
    """The tables of one family, named by its labels and its suffix; messages have no suffix."""

    family: Family

    def _named(self, name: str) -> str:
        return f"{name.lower().replace(' ', '_')}{self.family.suffix}"

    @property
    def by_source(self) -> str:
        """The table of entries by source."""
        return self._named(f"lineage_by_{self.family.truth.source.label}")

    @property
    def by_row(self) -> str:
        """The table of entries by slot."""
        return self._named("lineage_by_row")

    @property
    def truth_deletes(self) -> str:
        """The table of truth deletes, by source and group."""
        return self._named("truth_deletes")

    @property
    def projection_deletes(self) -> str:
        """The table of deletes of projection rows, by slot."""
        return self._named("projection_deletes")

    @property
    def group_deletes(self) -> str:
        """The table of the times of truth deletes, by group."""
        return self._named(f"{self.family.group.label}_deletes")

    @property
    def expiries(self) -> str:
        """The table of the times when cells expire, by minute."""
        return self._named("expiries")

    @property
    def expiry_columns(self) -> tuple[KeyColumn, ...]:
        """The key, and the source if its deletes are remembered: a cell of it may expire."""
        source = (self.family.truth.source,) if self.family.remembered else ()
        return (*self.family.key, *source)

    @property
    def cql(self) -> str:
        """The CREATE statements for a step of the schema (``$ks``: the keyspace)."""
        source, group, *rest = self.family.truth.source, *self.family.key
        key, deleted_at = self.family.key, KeyColumn("deleted_at", "bigint", "")
        seen = ("seen boolean", "in_truth boolean", "recorded_at bigint", "had_at bigint")
        when = ("minute int", "due bigint")
        by_source, by_row = [source, *key], [*key, source]
        expiries = _table(self.expiries, self.expiry_columns, f"minute, due, {names(key)}", when)
        if not self.family.remembered:
            return expiries
        return "\n".join(
            (
                _table(self.by_source, by_source, names(by_source), seen),
                _table(self.by_row, by_row, names(by_row), seen),
                _of_deletes(
                    self.truth_deletes,
                    [*by_source, deleted_at],
                    f"({names([source, group])}), {names([*rest, deleted_at])}",
                ),
                _of_deletes(
                    self.projection_deletes,
                    [*key, deleted_at],
                    f"({names(key)}), deleted_at",
                    ("sent_at bigint",),
                ),
                _of_deletes(self.group_deletes, [group, deleted_at], names([group, deleted_at])),
                expiries,
            )
        )


def _table(name: str, columns: Sequence[KeyColumn], primary: str, more: Sequence[str] = ()) -> str:
    typed = (f"{column.name} {column.own_type}" for column in columns)
    lines = ",\n    ".join((*typed, *more, f"PRIMARY KEY ({primary})"))
    return f"CREATE TABLE IF NOT EXISTS $ks.{name} (\n    {lines}\n);"


def _of_deletes(
    name: str, columns: Sequence[KeyColumn], primary: str, more: Sequence[str] = ()
) -> str:
    table = _table(name, columns, primary, more).removesuffix(";")
    return f"{table} WITH default_time_to_live = {DELETES_KEPT_SECONDS};"


def names(columns: Sequence[KeyColumn]) -> str:
    """The columns as a list in a statement."""
    return ", ".join(column.name for column in columns)


def equal(columns: Sequence[KeyColumn]) -> str:
    """A condition that each column equals a marker."""
    return " AND ".join(f"{column.name} = ?" for column in columns)


def marks(columns: Sequence[KeyColumn]) -> str:
    """One marker for each column."""
    return ", ".join("?" for _ in columns)
