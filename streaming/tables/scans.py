"""Whole tables of one family, read by token range: undecoded, paged, and paced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cassandra.metadata import Murmur3Token

from checkpoints.cassandra.raw_select import RawReads, RawSelect
from reconcilers.declared.raw import BIGINT, RawCell, RawRow
from reconcilers.declared.scan import TableScan
from reconcilers.words.errors import Misconfigured
from reconcilers.words.tokens import TokenRange
from streaming.tables.rate_limit import RateLimiter

ROWS_A_PAGE = 5_000
MURMUR3 = "Murmur3Partitioner"


class UndecodedScans:
    """`streaming.steps.ports.RawScans` of some tables in one keyspace. Not thread-safe."""

    def __init__(
        self, reads: RawReads, keyspace: str, scans: Iterable[TableScan], pace: RateLimiter
    ) -> None:
        self._reads, self._keyspace, self._pace = reads, keyspace, pace
        self._selects = {each.table: (self._select(each), each.types) for each in scans}

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        """All rows in a range of tokens, in token order; at most ``most`` in a page.

        Raises `Misconfigured` unless the tokens are Murmur3's, and `Refused` if a column does not
        have the type that its scan needs.
        """
        self._require_murmur3()
        select, types = self._selects[table]
        select.require(*types)
        markers = BIGINT.pack(tokens.after), BIGINT.pack(tokens.until)
        for rows in select.pages(markers, min(most, ROWS_A_PAGE)):
            self._pace.spend(len(rows))
            yield rows

    def token(self, partition: RawCell) -> int:
        """The token of a partition key, of which these are the bytes."""
        assert partition is not None, "no row is without a partition"
        token: int = Murmur3Token.hash_fn(partition)
        return token

    def _select(self, scan: TableScan) -> RawSelect:
        token, each = f"token({', '.join(scan.partition)})", "DISTINCT " * scan.distinct
        return self._reads.select(
            f"SELECT {each}{', '.join(scan.columns)} FROM {self._keyspace}.{scan.table}"
            f" WHERE {token} > ? AND {token} <= ?"
        )

    def _require_murmur3(self) -> None:
        partitioner = str(self._reads.session.cluster.metadata.partitioner)
        if not partitioner.endswith(MURMUR3):
            raise Misconfigured(f"tables are swept by the tokens of {MURMUR3}, not {partitioner}")
