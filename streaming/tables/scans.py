"""Whole tables of one family, read by token range: undecoded, paged, and paced."""

from __future__ import annotations

from collections.abc import Iterator

from cassandra.metadata import Murmur3Token

from checkpoints.cassandra.raw_select import RawReads, RawSelect
from reconcilers.declared.family import Family
from reconcilers.declared.raw import BIGINT, RawCell, RawRow, RawShape
from reconcilers.words.errors import Misconfigured
from reconcilers.words.tokens import TokenRange
from streaming.tables.rate_limit import RateLimiter

ROWS_A_PAGE = 5_000
MURMUR3 = "Murmur3Partitioner"


class UndecodedScans:
    """`streaming.steps.ports.RawScans` in one keyspace. Not thread-safe.

    It reads the columns of ``shape`` from the truth and the listing, and the key of an index.
    """

    def __init__(
        self, reads: RawReads, keyspace: str, family: Family, shape: RawShape, pace: RateLimiter
    ) -> None:
        self._reads, self._keyspace, self._pace = reads, keyspace, pace
        truth, (listing, *indexes) = family.truth, family.projections
        self._selects = {truth.table: self._select(shape.truth, truth.table, truth.source.name)}
        self._selects[listing.table] = self._select(shape.listing, listing.table, listing.key[0])
        for each in indexes:
            if each.collects is None:
                self._selects[each.table] = self._select(each.key, each.table, each.key[0])

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        """All rows in a range of tokens, in token order; at most ``most`` in a page.

        Raises `Misconfigured` unless the tokens are Murmur3's.
        """
        self._require_murmur3()
        markers = BIGINT.pack(tokens.after), BIGINT.pack(tokens.until)
        for rows in self._selects[table].pages(markers, min(most, ROWS_A_PAGE)):
            self._pace.spend(len(rows))
            yield rows

    def token(self, partition: RawCell) -> int:
        """The token of a partition key of one column."""
        assert partition is not None, "no row is without a partition"
        token: int = Murmur3Token.hash_fn(partition)
        return token

    def _select(self, columns: tuple[str, ...], table: str, partition: str) -> RawSelect:
        token = f"token({partition})"
        return self._reads.select(
            f"SELECT {', '.join(columns)} FROM {self._keyspace}.{table}"
            f" WHERE {token} > ? AND {token} <= ?"
        )

    def _require_murmur3(self) -> None:
        partitioner = str(self._reads.session.cluster.metadata.partitioner)
        if not partitioner.endswith(MURMUR3):
            raise Misconfigured(f"tables are swept by the tokens of {MURMUR3}, not {partitioner}")
