"""The index tables against the truth."""

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from deploy.comparison.messages import DifferenceKind, Mismatch, absent_cells
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.history import NO_UID, Cells, RowKey
from deploy.mailserver.indexes import APPLICABLE_FLAGS, UID_INDEXES


def index_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every difference of an index.

    Where truth and messageidtable disagree on whether a message is there, or its truth row is
    incomplete or not the only one, an index of it is neither right nor wrong.
    """
    messages = dict(_settled_messages(tables))
    doubtful = (tables.truth.keys() | tables.listed.keys()) - messages.keys()
    for index in UID_INDEXES:
        indexed = tables.indexed.get(index.projection, frozenset())
        wanted = {row for row, cells in messages.items() if index.belongs(cells)}
        for kind, rows in (
            (DifferenceKind.MISSING, wanted - indexed),
            (DifferenceKind.EXTRA, indexed - wanted - doubtful),
        ):
            for row in sorted(rows):
                told = (messages[row]["messageid"],) if row in messages else ()
                yield Mismatch(kind, *row, told, projection=index.projection)
    for mailboxid, flags in _flags_in_use(messages).items():
        if missing := flags - tables.applicable.get(mailboxid, frozenset()):
            yield Mismatch(
                DifferenceKind.CELLS,
                mailboxid,
                NO_UID,
                columns=tuple(sorted(missing)),
                projection=APPLICABLE_FLAGS,
            )


def _settled_messages(tables: Snapshot) -> Iterator[tuple[RowKey, Cells]]:
    """The truth rows that are complete, alone at their place, and listed."""
    for row, claims in tables.truth.items():
        if row in tables.listed and len(claims) == 1 and not absent_cells(claims[0]):
            yield row, claims[0]


def _flags_in_use(messages: dict[RowKey, Cells]) -> dict[UUID, set[str]]:
    used: defaultdict[UUID, set[str]] = defaultdict(set)
    for (mailboxid, _), cells in messages.items():
        used[mailboxid].update(cells["userflags"] or ())
    return used
