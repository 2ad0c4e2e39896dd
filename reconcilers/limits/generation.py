"""The generation of our own keyspace: a time that only goes up, by which an older copy is noticed.

It stands in `owner`, and in each table whose empty answer would mean that repairs may go on:
pauses (with pilots), holds, breakers. While a stream settles anything it raises all of them, about
once a minute. Every process keeps the newest that it has seen, and a copy stands outside the
keyspace, beside the offsets that are committed to Kafka. A table that was truncated has none, and
one that was restored from an older copy has one that is too old. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconcilers.words.iso import iso
from reconcilers.words.model import Micros

OWNER = "owner"
GUARDS = ("pauses", "holds", "breakers")
"""The tables of which an empty answer would let repairs go on."""
GENERATIONS = (OWNER, *GUARDS)
NOTE = "generation="
"""Begins what is committed to Kafka beside the settled offsets."""

Generations = Mapping[str, Micros | None]
"""The generation (µs) that each of these tables holds; None where it holds none."""


def oldest(found: Generations) -> Micros | None:
    """The generation of the whole: that of the oldest table, None where one has none."""
    known = [each for each in found.values() if each is not None]
    return min(known) if len(known) == len(found) else None


def doubt(found: Generations, least: Micros | None) -> str | None:
    """Why these tables are not as they were left, None where they are.

    ``least`` is the newest generation that is known from elsewhere, None where none is: a keyspace
    without any is a new one then.
    """
    lost = [table for table, each in found.items() if each is None]
    if least is None and len(lost) == len(found):
        return None
    if lost:
        return f"{_tables(lost)} no generation any more: truncated, dropped, or partly restored"
    older = {each: table for table, each in found.items() if each is not None}
    first = min(older)
    if least is None or first >= least:
        return None
    return f"table {older[first]} is a copy of {iso(first)}, and was written to until {iso(least)}"


def is_new(found: Generations, outside: Micros | None) -> bool:
    """Whether no generation was ever given to this keyspace: a new or upgraded installation.

    They are given in the order of GUARDS, and `owner` is the last. So a start that was killed in
    between leaves the first of them with one: that is a new one, too. Any other gap is a loss.
    """
    given = [found[table] is not None for table in (*GUARDS, OWNER)]
    return outside is None and not given[-1] and given == sorted(given, reverse=True)


def next_of(found: Generations, least: Micros | None, now: Micros) -> Micros:
    """A generation above all that are known: the time now, whatever the clock says."""
    known = [each for each in (*found.values(), least) if each is not None]
    return max([now, *(each + 1 for each in known)])


def note_of(generation: Micros | None) -> str:
    """As it is kept beside committed offsets; empty where none is known."""
    return "" if generation is None else f"{NOTE}{generation}"


def noted(note: str) -> Micros | None:
    """The generation in such a note; None in any other text."""
    name, _, number = note.partition(NOTE)
    return int(number) if not name and number.isdecimal() else None


def _tables(names: list[str]) -> str:
    return f"table {names[0]} has" if len(names) == 1 else f"tables {', '.join(names)} have"
