"""A sweep's fingerprints on a cluster: on the executors' disks, and by a shuffle to those who ask.

::

    scan of one table ─▶ its fingerprints: blocks of Spark ─▶ shuffle by place ─▶ scan of the other

A scan leaves fingerprints in blocks, each on two executors. When another table is scanned that they
are for, they are shuffled by their place in the order of its tokens. A task gets one part, and
reads pieces that begin there: a piece ends with the part. Blocks that are lost cost time only.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark import RDD, SparkContext, StorageLevel

from reconcilers.declared.family import Family
from streaming.again.fingerprints import (
    PLACES,
    CarriedFingerprints,
    Fingerprints,
    as_sorted,
    place_of,
)
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.scan import Scanning, sweep_task
from streaming.again.workers import Tasks, in_shares

log = logging.getLogger("reconciler")

ROWS_A_PART = 100_000
SWEPT = -1
"""The place of a swept piece among the fingerprints that it leaves."""
LOST = "Checkpoint block"
"""In the error of a job that needs a block which no executor has any more."""
Leaving = tuple[int, bytes | SweptPiece]
"""Fingerprints and their place; or `SWEPT` and the swept piece."""


@dataclass(slots=True)
class OnExecutors:
    """`streaming.again.workers.PieceScans` of one sweep."""

    scanning: Scanning
    _left: defaultdict[str, list[RDD[Leaving]]] = field(default_factory=lambda: defaultdict(list))
    _rows: Counter[str] = field(default_factory=Counter)
    _parts: dict[str, RDD[Leaving]] = field(default_factory=dict)

    def __call__(
        self, spark: SparkContext, pieces: Sequence[Piece], tasks: Tasks
    ) -> Sequence[SweptPiece]:
        """What was found in these pieces."""
        for table in {each.table for each in pieces if not each.ahead} & self._left.keys():
            self._shuffle(spark, table, tasks)
        try:
            return self._scan(spark, pieces, tasks)
        except Py4JJavaError as failed:
            if not self._parts or LOST not in str(failed):
                raise
        log.warning("the sweep takes longer: an executor was lost, and fingerprints with it")
        self._parts.clear()
        return self._scan(spark, pieces, tasks)

    def _shuffle(self, spark: SparkContext, table: str, tasks: Tasks) -> None:
        """Divide what is left for a table into parts; it is carried out by the next job."""
        parts = min(PLACES, -(-self._rows[table] // ROWS_A_PART)) or 1
        left = spark.union(self._left.pop(table)).filter(_is_fingerprints).coalesce(tasks.number)
        self._parts[table] = left.partitionBy(parts, partial(_part_of, parts))

    def _scan(
        self, spark: SparkContext, pieces: Sequence[Piece], tasks: Tasks
    ) -> Sequence[SweptPiece]:
        scanning = self.scanning.of_tasks(tasks.at_a_time)
        given = [each for each in pieces if not each.ahead and each.table in self._parts]
        others = [each for each in pieces if each not in given]
        jobs = [
            self._with_parts(scanning, table, [each for each in given if each.table == table])
            for table in sorted({each.table for each in given})
        ]
        if others:
            shares = in_shares(spark, others, min(len(others), tasks.number))
            jobs.append(shares.mapPartitions(partial(_swept, scanning, as_sorted(b""))))
        found = spark.union(jobs)
        for_table = {_for(scanning.job.family, each) for each in pieces} - {None}
        if for_table:
            found = found.persist(StorageLevel.DISK_ONLY_2)
            found.localCheckpoint()
        swept = [each for _, each in found.filter(_is_swept).collect()]
        for table in filter(None, for_table):
            self._left[table].append(found)
            self._rows[table] += sum(each.rows for each in swept if isinstance(each, SweptPiece))
        return [each for each in swept if isinstance(each, SweptPiece)]

    def _with_parts(self, scanning: Scanning, table: str, pieces: Sequence[Piece]) -> RDD[Leaving]:
        """A job over the parts in which these pieces begin: a task for each part."""
        whole = self._parts[table]
        parts = whole.getNumPartitions()
        shares = defaultdict[int, list[Piece]](list)
        for each in pieces:
            part = _part_of(parts, place_of(each.numbers.start, each.ranges))
            shares[part].append(_within(each, part, parts))
        chosen = sorted(shares)
        task = partial(_swept_part, scanning, [shares[each] for each in chosen])
        return _only(whole, chosen).mapPartitionsWithIndex(task)


def _for(family: Family, piece: Piece) -> str | None:
    """The table for whose scan a piece leaves fingerprints."""
    if piece.ahead:
        return family.truth.table
    return family.listing.table if piece.table == family.truth.table else None


def _part_of(parts: int, place: int) -> int:
    return place * parts // PLACES


def _within(piece: Piece, part: int, parts: int) -> Piece:
    """The beginning of a piece: its ranges that are in this part."""
    its = [each for each in piece.numbers if _part_of(parts, place_of(each, piece.ranges)) == part]
    return replace(piece, numbers=range(its[0], its[-1] + 1))


def _only(whole: RDD[Leaving], parts: Sequence[int]) -> RDD[Leaving]:
    """Some partitions; Spark computes and fetches no other."""
    spark = whole.ctx
    jvm = spark._jvm  # noqa: SLF001 (Python's API has no such thing)
    assert jvm is not None
    wanted = jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(parts)).toSet()
    of_java = whole._jrdd.rdd()  # noqa: SLF001
    pruned = jvm.org.apache.spark.rdd.PartitionPruningRDD.create(of_java, wanted)
    return RDD(pruned.toJavaRDD(), spark, whole._jrdd_deserializer)  # noqa: SLF001


# --- on a worker


def _swept_part(
    scanning: Scanning, shares: Sequence[Sequence[Piece]], number: int, part: Iterable[Leaving]
) -> Iterator[Leaving]:
    """Scan the pieces that begin in a part, with its fingerprints."""
    given = as_sorted(b"".join([some for _, some in part if isinstance(some, bytes)]))
    return _swept(scanning, given, shares[number])


def _swept(scanning: Scanning, given: Fingerprints, pieces: Iterable[Piece]) -> Iterator[Leaving]:
    for piece in pieces:
        carried = CarriedFingerprints(piece.ranges, given)
        swept = sweep_task(replace(scanning, expected=carried, compared=carried))([piece])
        yield from ((SWEPT, each) for each in swept)
        yield from ((place, bytes(some)) for place, some in carried.noted.items())


def _is_swept(left: Leaving) -> bool:
    return left[0] == SWEPT


def _is_fingerprints(left: Leaving) -> bool:
    return left[0] != SWEPT
