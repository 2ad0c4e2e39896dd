"""How tables are captured, as one text: what it tells of each, and whether it has changed. Pure.

A table that was dropped and made again has another id. One whose capture was turned off and on
again has not, but each change of its settings has a time of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def text_of(tables: Mapping[str, str]) -> str:
    """Of each table what names its capture; neither holds a space or an equals sign."""
    return " ".join(f"{table}={state}" for table, state in sorted(tables.items()))


def unchanged(before: str, now: str | None) -> bool:
    """Whether every table of both texts is captured as before.

    False where one is not captured now (None), and where it is not known how they were (empty). A
    table that is newly watched, or no more, changes nothing for the others.
    """
    if not before or now is None:
        return False
    was, is_now = _tables(before), _tables(now)
    both = was.keys() & is_now.keys()
    return bool(both) and all(was[table] == is_now[table] for table in both)


def rests_on(text: str, tables: Collection[str]) -> bool:
    """Whether any of these tables is captured by this text; of none (empty) that is not known."""
    return not text or not _tables(text).keys().isdisjoint(tables)


def _tables(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split())
    return {table: state for table, _, state in pairs}
