"""Every difference between the truth and all that repeats it or sums it up. Pure."""

from collections.abc import Iterator

from deploy.comparison.counters import counter_differences
from deploy.comparison.indexes import index_differences
from deploy.comparison.mailboxes import mailbox_differences
from deploy.comparison.messages import Mismatch, compare_row
from deploy.comparison.references import reference_differences
from deploy.comparison.rights import rights_differences
from deploy.comparison.snapshot import Snapshot


def differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every difference in the tables as they were read."""
    yield from message_differences(tables)
    yield from index_differences(tables)
    yield from counter_differences(tables)
    yield from rights_differences(tables)
    yield from reference_differences(tables)
    yield from mailbox_differences(tables)


def message_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every difference between imapuidtable and messageidtable."""
    for row in tables.truth.keys() | tables.listed.keys():
        yield from compare_row(tables.truth.get(row, []), tables.listed.get(row))
