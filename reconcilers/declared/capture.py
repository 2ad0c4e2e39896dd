"""How tables are captured, as one text that two times can be compared by. Pure.

A recreated table has another id. If capture is turned off and on, the id stays, but each change of
the table's settings has its own time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def text_of(tables: Mapping[str, str]) -> str:
    """The text of all tables and their capture states, which have no space or equals sign."""
    return " ".join(f"{table}={state}" for table, state in sorted(tables.items()))


def unchanged(before: str, now: str | None) -> bool:
    """Whether every table of both texts is captured as before.

    False if a table is not captured now (None), or if the earlier state is unknown (empty). A table
    that is in one text only does not count.
    """
    if not before or now is None:
        return False
    was, is_now = _tables(before), _tables(now)
    both = was.keys() & is_now.keys()
    return bool(both) and all(was[table] == is_now[table] for table in both)


def rests_on(text: str, tables: Collection[str]) -> bool:
    """Whether the text contains any of these tables; True for an empty text, which is unknown."""
    return not text or not _tables(text).keys().isdisjoint(tables)


def _tables(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split())
    return {table: state for table, _, state in pairs}
