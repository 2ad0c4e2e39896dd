"""Watches whether James's tables still have the columns that this process has bound."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reconcilers.declared.family import Family, Schema, bind
from reconcilers.words.errors import EndedItself, Misconfigured, Refused
from streaming.settings import Settings

log = logging.getLogger("reconciler")

Bound = tuple[Family, ...]


def bound(settings: Settings, schema: Schema) -> Bound:
    """Each family with its columns. Raises `Misconfigured` for a missing table or key."""
    return tuple(bind(each, schema) for each in settings.families())


@dataclass(slots=True)
class SchemaWatch:
    """Compares the families as they were ``bound`` with what a new start would bind.

    ``schema`` reads the schema of the cluster.
    """

    settings: Settings
    bound: Bound
    schema: Callable[[], Schema]
    _told: str = ""

    def check(self) -> None:
        """Raises `EndedItself` if a new start would bind other columns, and `Retryable`.

        If a new start would be refused, this process continues and logs it.
        """
        try:
            now = bound(self.settings, self.schema())
        except (Misconfigured, Refused) as refused:
            if str(refused) != self._told:
                log.error("the next start will be refused: %s", refused)
            self._told = str(refused)
            return
        if now != self.bound:
            differ = "; ".join(_changes(self.bound, now)) or "other tables are there"
            raise EndedItself(f"James's tables were altered while this process ran: {differ}")


def _changes(before: Bound, now: Bound) -> Iterator[str]:
    """The columns that each table has gained or lost."""
    for then, today in zip(before, now, strict=True):
        for old, new in zip(then.projections, today.projections, strict=True):
            added, dropped = {*new.columns} - {*old.columns}, {*old.columns} - {*new.columns}
            if added:
                yield f"{new.table} has {', '.join(sorted(added))}"
            if dropped:
                yield f"{new.table} lacks {', '.join(sorted(dropped))}"
