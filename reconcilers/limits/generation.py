"""The generation of our keyspace: a time that only increases and reveals an older copy. Pure.

It is stored in `owner`, and in each table whose empty answer would let repairs continue: pauses
(with pilots), holds, breakers. A stream that settles offsets raises all of them about once a
minute. Every process keeps the newest that it has seen. A copy is stored outside the keyspace, with
the offsets that are committed to Kafka. A truncated table has no generation, and one restored from
an older copy has one that is too old.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconcilers.words.iso import iso
from reconcilers.words.model import Micros

OWNER = "owner"
GUARDS = ("pauses", "holds", "breakers")
"""The tables whose empty answer would let repairs continue."""
GENERATIONS = (OWNER, *GUARDS)
NOTE = "generation="
"""The first characters of the note that is committed to Kafka with the settled offsets."""

Generations = Mapping[str, Micros | None]
"""The generation (µs) by table; None for a table without one."""


def oldest(found: Generations) -> Micros | None:
    """The generation of the keyspace: that of its oldest table, None if a table has none."""
    known = [each for each in found.values() if each is not None]
    return min(known) if len(known) == len(found) else None


def doubt(found: Generations, least: Micros | None) -> str | None:
    """Why these tables are not as they were left, None if they are.

    ``least`` is the newest generation known from elsewhere, None if none is known. A keyspace
    without any generation is then a new one.
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
    """Whether this keyspace never had a generation: a new or upgraded installation.

    Generations are set in the order of GUARDS, and in `owner` at the end. A start that was killed
    in between leaves them in the first tables only, which is new, too. Any other gap is a loss.
    """
    given = [found[table] is not None for table in (*GUARDS, OWNER)]
    return outside is None and not given[-1] and given == sorted(given, reverse=True)


def next_of(found: Generations, least: Micros | None, now: Micros) -> Micros:
    """A generation above all that are known, and no lower than ``now`` (µs)."""
    known = [each for each in (*found.values(), least) if each is not None]
    return max([now, *(each + 1 for each in known)])


def note_of(generation: Micros | None) -> str:
    """The note to commit with offsets; empty if no generation is known."""
    return "" if generation is None else f"{NOTE}{generation}"


def noted(note: str) -> Micros | None:
    """The generation (µs) of a note; None for any other text."""
    name, _, number = note.partition(NOTE)
    return int(number) if not name and number.isdecimal() else None


def _tables(names: list[str]) -> str:
    return f"table {names[0]} has" if len(names) == 1 else f"tables {', '.join(names)} have"
