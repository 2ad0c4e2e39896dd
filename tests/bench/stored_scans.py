"""What a sweep reads of whole tables, from a file beside the executors: they can import this.

The servers' part of a sweep is left out; what is compared and asked besides is the product's.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from cassandra.metadata import Murmur3Token

from reconcilers.declared.family import Family
from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.declared.scan import scans_of
from reconcilers.words.tokens import TokenRange
from streaming.again.fingerprints import CarriedFingerprints, as_sorted
from streaming.again.scan import Scanning
from streaming.pipeline.worker import Job
from streaming.tables.scans import ROWS_A_PAGE
from tests.fakes.cql_tables import FakeTable
from tests.fakes.no_past import nothing_past

Stored = Mapping[str, tuple[Sequence[int], Sequence[RawRow]]]
"""The tokens of each table's rows, in order, and the rows."""
LENGTH = 4
"""Bytes before a cell of a fake server's."""


def store(file: Path, family: Family, tables: Iterable[FakeTable]) -> None:
    """Write what a sweep of a family reads of these tables."""
    cells = {each.name: each.cells() for each in tables}
    stored: dict[str, tuple[list[int], list[RawRow]]] = {}
    for scan in scans_of(family):
        found = list[tuple[int, RawRow]]()
        for held in cells[scan.table]:
            row = tuple(held[name][LENGTH:] or None for name in scan.columns)
            found.append((token_of(scan.partition_of(row)), row))
        found.sort(key=lambda each: each[0])
        stored[scan.table] = ([token for token, _ in found], [row for _, row in found])
    file.write_bytes(pickle.dumps(stored))


def token_of(partition: RawCell) -> int:
    token: int = Murmur3Token.hash_fn(partition)
    return token


@cache
def stored_in(file: Path) -> Stored:
    stored: Stored = pickle.loads(file.read_bytes())
    return stored


class StoredScans:
    """`streaming.steps.ports.RawScans` of a file that `store` has written."""

    def __init__(self, file: Path) -> None:
        self._stored = stored_in(file)

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        """All rows in a range of tokens, in their order."""
        of, rows = self._stored[table]
        begin, end = bisect_right(of, tokens.after), bisect_right(of, tokens.until)
        page = min(most, ROWS_A_PAGE)
        for start in range(begin, end, page):
            yield list(rows[start : min(end, start + page)])

    def token(self, partition: RawCell) -> int:
        return token_of(partition)


def scans(file: Path, _job: Job) -> StoredScans:
    return StoredScans(file)


def scanning(job: Job, file: Path) -> Scanning:
    """A sweep on executors."""
    none = CarriedFingerprints(1, as_sorted(b""))
    return Scanning(job, partial(scans, file), nothing_past, none, none)
