"""The full comparison, by code that shares nothing with the reconciler.

    python -m deploy.demo.compare --port 9042 --keyspace apache_james

Reads imapuidtable and messageidtable whole, one after the other, and tells every difference
between them: so run it when nobody writes. Exits with 0 where there is none, with 1 where
there are some, and with 2 where the tables cannot be read.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement
from cassandra.util import SortedSet

from deploy.demo.connection import add_options, connected

ROWS_PER_PAGE = 5000
NEEDED_IN_TRUTH = (
    "modseq",
    "internaldate",
    "bodystartoctet",
    "fullcontentoctets",
    "headercontent",
)
"""A truth row without one of these is incomplete, so says nothing of its projection."""

Cells = Mapping[str, Any]
RowKey = tuple[UUID, int]


class DifferenceKind(StrEnum):
    """How the two tables disagree on one (mailboxid, uid)."""

    MISSING = "missing_row"
    EXTRA = "extra_row"
    CELLS = "differing_cells"
    INCOMPLETE_TRUTH = "incomplete_truth_row"
    DUPLICATE_UID = "duplicate_uid"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `columns` names the cells that differ, or are absent from the truth."""

    kind: DifferenceKind
    mailboxid: UUID
    uid: int
    messageids: tuple[UUID, ...]
    columns: tuple[str, ...] = ()

    @property
    def row(self) -> RowKey:
        """Its key in the projection."""
        return (self.mailboxid, self.uid)

    def __str__(self) -> str:
        messages = ", ".join(str(messageid) for messageid in self.messageids)
        columns = f" in {', '.join(self.columns)}" if self.columns else ""
        return (
            f"{self.kind}{columns}: mailbox {self.mailboxid}, uid {self.uid}, "
            f"message {messages or 'unknown'}"
        )


def full_comparison(session: Session, keyspace: str) -> Iterator[Difference]:
    """Every difference between the truth and its projection; reads both tables whole.

    The session's rows must be named tuples, as they are by default.
    """
    truth: defaultdict[RowKey, list[Cells]] = defaultdict(list)
    for row in _whole_table(session, keyspace, "imapuidtable"):
        truth[row["mailboxid"], row["uid"]].append(row)
    for row in _whole_table(session, keyspace, "messageidtable"):
        claims = truth.pop((row["mailboxid"], row["uid"]), [])
        yield from compare_row(claims, row)
    for claims in truth.values():
        yield from compare_row(claims, None)


def compare_row(claims: list[Cells], projected: Cells | None) -> Iterator[Difference]:
    """Compare what the truth has at one (mailboxid, uid) with what the projection has."""
    rows = [*claims, projected] if projected else claims
    key = (rows[0]["mailboxid"], rows[0]["uid"])
    messages = tuple(sorted({row["messageid"] for row in rows if row["messageid"]}))
    if len(claims) > 1:
        yield Difference(DifferenceKind.DUPLICATE_UID, *key, messages)
    elif not claims:
        yield Difference(DifferenceKind.EXTRA, *key, messages)
    elif absent := tuple(c for c in NEEDED_IN_TRUTH if c in claims[0] and claims[0][c] is None):
        yield Difference(DifferenceKind.INCOMPLETE_TRUTH, *key, messages, absent)
    elif projected is None:
        yield Difference(DifferenceKind.MISSING, *key, messages)
    elif columns := differing_columns(claims[0], projected):
        yield Difference(DifferenceKind.CELLS, *key, messages, columns)


def differing_columns(truth: Cells, projected: Cells) -> tuple[str, ...]:
    """Columns that both tables have and that differ; an empty set is the same as null."""
    shared = sorted(truth.keys() & projected.keys())
    return tuple(name for name in shared if _cell(truth[name]) != _cell(projected[name]))


def _cell(value: Any) -> Any:
    if isinstance(value, set | SortedSet):
        return frozenset(value) or None
    return value


def _whole_table(session: Session, keyspace: str, table: str) -> Iterator[Cells]:
    """All rows of a table at QUORUM, a page in memory at a time."""
    statement = SimpleStatement(
        f"SELECT * FROM {keyspace}.{table}",
        fetch_size=ROWS_PER_PAGE,
        consistency_level=ConsistencyLevel.QUORUM,
    )
    for row in session.execute(statement):
        yield row._asdict()


def main() -> None:
    """Print each difference as a line of JSON; exit with 1 where there is any."""
    parser = argparse.ArgumentParser(description="compare imapuidtable with messageidtable")
    add_options(parser)
    given = parser.parse_args()
    found = 0
    with connected(given.host, given.port) as session:
        for difference in full_comparison(session, given.keyspace):
            found += 1
            line = {
                "kind": difference.kind,
                "mailboxid": str(difference.mailboxid),
                "uid": difference.uid,
                "messageids": [str(messageid) for messageid in difference.messageids],
                "columns": difference.columns,
            }
            print(json.dumps(line))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
