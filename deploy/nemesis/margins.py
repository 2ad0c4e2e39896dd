"""By how much counters may differ because of rows that wait for a person. Pure.

While nobody has decided what becomes of a row, its counters may count it as the truth has it, as
the listing has it, or not at all: a mail server does not show a message that lacks cells.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from deploy.comparison.counters import owners_of
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.counters import CounterTable
from deploy.mailserver.history import RowKey


@dataclass(frozen=True, slots=True)
class CounterMargin:
    """What may be missing of the truth's sum, at most, and what may be added to it."""

    less: int = 0
    more: int = 0

    def plus(self, other: "CounterMargin") -> "CounterMargin":
        """Of two rows together."""
        return CounterMargin(self.less + other.less, self.more + other.more)


def margins(
    table: CounterTable, snapshot: Snapshot, rows: Collection[RowKey]
) -> dict[tuple[UUID | str, str], CounterMargin]:
    """By mailbox or quota root and counter, for these rows of messages."""
    owners = owners_of(table, snapshot)
    found: dict[tuple[UUID | str, str], CounterMargin] = {}
    for row in rows:
        if row[0] not in owners:
            continue
        truth, listed = Counter[str](), Counter[str]()
        for cells in snapshot.truth.get(row, ()):
            truth.update(table.share(cells))
        if row in snapshot.listed:
            listed.update(table.share(snapshot.listed[row]))
        for counter in table.counters:
            of = owners[row[0]], counter
            more = max(0, listed[counter] - truth[counter])
            margin = CounterMargin(truth[counter], more)
            found[of] = found.get(of, CounterMargin()).plus(margin)
    return found
