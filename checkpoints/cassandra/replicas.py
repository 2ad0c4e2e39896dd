"""Reads of several partitions: on a larger cluster those of one first replica together.

The node that gets such a read asks the replicas of each partition, and is as slow as the slowest of
them. On a few nodes these are the same for most partitions. On more, partitions are divided by
their first replica, and that node gets the read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any, TypeVar

from cassandra.cluster import Session
from cassandra.query import BoundStatement

from reconcilers.words.groups import in_groups

FEW_NODES = 3
"""On so many nodes, or fewer, partitions are not divided by replica."""
PARTITIONS_A_READ = 100
LENGTH = Struct(">H")
"""The length of each column of a partition key of several columns."""

K = TypeVar("K")


class Routed(BoundStatement):  # type: ignore[misc]
    """A prepared statement for the replicas of the partition with this key (bytes)."""

    def __init__(self, prepared: Any, partition: bytes | None) -> None:
        self._partition = partition
        super().__init__(prepared)

    @property
    def routing_key(self) -> Any:
        """The key by which the driver finds the replicas; its own without a partition."""
        return super().routing_key if self._partition is None else self._partition


def by_first_replica(
    session: Session,
    statement: Any,
    keys: Sequence[K],
    most: int,
    bytes_of: Callable[[K], bytes],
) -> Iterator[tuple[Sequence[K], bytes | None]]:
    """The keys in groups of up to ``most``, one for each read by a prepared ``statement``.

    ``bytes_of`` returns the bytes of a partition's key. Each group has those of a partition for
    whose replicas it is, or None if any node may get it.
    """
    metadata = session.cluster.metadata
    if len(metadata.all_hosts()) <= FEW_NODES:
        yield from ((some, None) for some in in_groups(keys, most))
        return
    keyspace = statement.column_metadata[0].keyspace_name
    near = defaultdict[Any, list[tuple[K, bytes]]](list)
    for key in keys:
        partition = bytes_of(key)
        replicas = metadata.get_replicas(keyspace, partition)
        near[replicas[0] if replicas else None].append((key, partition))
    for pairs in near.values():
        for some in in_groups(pairs, most):
            yield [key for key, _ in some], some[0][1]


def partition_of(
    statement: Any, before: Sequence[object], after: Sequence[object]
) -> Callable[[object], bytes]:
    """A function from a key to the bytes of its partition's key.

    The first markers of the prepared statement are the columns of that key: those with the values
    ``before``, a list, and those with the values ``after``.
    """
    of_key = statement.column_metadata[: len(before) + 1 + len(after)]
    types = [column.type for column in of_key]
    (types[len(before)],) = types[len(before)].subtypes

    def bytes_of(key: object) -> bytes:
        values = zip(types, (*before, key, *after), strict=True)
        cells: list[bytes] = [
            each.serialize(cell, statement.protocol_version) for each, cell in values
        ]
        if len(cells) == 1:
            return cells[0]
        return b"".join(LENGTH.pack(len(cell)) + cell + b"\0" for cell in cells)

    return bytes_of
