"""The counters of every mailbox that exists, and the quota of its user, against the truth."""

from collections import Counter
from collections.abc import Iterator, Mapping
from uuid import UUID

from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.counters import COUNTER_TABLES, MAILBOX_COUNTERS, CounterTable
from deploy.mailserver.history import counter_row


def counter_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every mailbox and quota root whose counters are not what the truth adds up to."""
    for table in COUNTER_TABLES.values():
        yield from _wrong(table, tables)


def owners_of(table: CounterTable, tables: Snapshot) -> Mapping[UUID, UUID | str]:
    """The mailbox or quota root that each mailbox that exists counts for."""
    if table is MAILBOX_COUNTERS:
        return {mailboxid: mailboxid for mailboxid in tables.roots}
    return tables.roots


def wanted_sums(table: CounterTable, tables: Snapshot) -> dict[UUID | str, Counter[str]]:
    """What the truth adds up to for each mailbox or quota root, by counter."""
    owners = owners_of(table, tables)
    sums: dict[UUID | str, Counter[str]] = {owner: Counter() for owner in owners.values()}
    for (mailboxid, _), claims in tables.truth.items():
        for cells in claims:
            if mailboxid in owners:
                sums[owners[mailboxid]].update(table.share(cells))
    return sums


def _wrong(table: CounterTable, tables: Snapshot) -> Iterator[Mismatch]:
    """One that was never written is 0."""
    for owner, wanted in wanted_sums(table, tables).items():
        row = tables.counted.get(table.projection, {}).get(owner, {})
        wrong = tuple(
            f"{counter} is {row.get(counter) or 0}, must be {wanted[counter]}"
            for counter in table.counters
            if (row.get(counter) or 0) != wanted[counter]
        )
        if wrong:
            yield Mismatch(
                DifferenceKind.WRONG_COUNTER,
                *counter_row(owner),
                columns=wrong,
                projection=table.projection,
                owner=str(owner),
            )
