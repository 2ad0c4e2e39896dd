"""Finds which part of a range names which family, in one Spark job for all families.

Most records are of messages, and name no other family. A family then reads only the part from its
first record to its last, and mostly nothing.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from checkpoints.bookmarks import OffsetRanges
from reconcilers.capture.frontier import Echoes
from reconcilers.capture.lane_echoes import folded
from reconcilers.declared.family import Family
from reconcilers.words.model import Micros, Slot
from streaming.pipeline.arrow import echo_of
from streaming.pipeline.envelope import value_schema
from streaming.pipeline.slice_work import RecordReader
from streaming.pipeline.sources import echo, is_canary, is_named, name_in_text, once
from streaming.pipeline.worker import BatchLook

KEPT, KEPT_FOR = 4, 60.0
"""So many ranges stay known, for so many seconds: the families look at the same ranges together."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is in a range: the part of each family by its name, and the canaries of each lane."""

    parts: Mapping[str, OffsetRanges]
    echoes: Sequence[Echoes]


@dataclass(slots=True)
class RecordSearch:
    """Searches ranges for all families, each range once.

    ``read`` returns the records of ranges; ``canaries`` is the keyspace of the canaries,
    ``longest_pause`` (µs) the setting.
    """

    read: Callable[[OffsetRanges], DataFrame]
    families: Sequence[Family]
    canaries: str
    longest_pause: Micros
    clock: Callable[[], float] = time.monotonic
    _known: list[tuple[float, OffsetRanges, Found]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def of(self, ranges: OffsetRanges) -> Found:
        """What is in these ranges; a second caller waits for the first one's job."""
        with self._lock:
            now = self.clock()
            self._known = [each for each in self._known if now - each[0] < KEPT_FOR][-KEPT:]
            for _, known, found in self._known:
                if known == ranges:
                    return found
            found = self._search(ranges)
            self._known.append((self.clock(), ranges, found))
            return found

    def _search(self, ranges: OffsetRanges) -> Found:
        name, offset = F.col("name"), F.col("offset")
        ends = []
        for number, family in enumerate(self.families):
            its = F.when(is_named(name, family), offset)
            ends += [F.min(its).alias(f"first_{number}"), F.max(its).alias(f"last_{number}")]
        heard = F.when(F.col("echo").isNotNull(), F.struct("topic", "partition", "offset", "echo"))
        event = F.from_json(F.col("value").cast("string"), value_schema(self.families[0]))
        found = (
            self.read(ranges)
            .where(F.col("value").isNotNull())
            .withColumn("name", once(name_in_text()))
            .withColumn("v", F.when(is_canary(name), event))
            .withColumn("looked_again", F.lit(False))
            .withColumn("echo", F.when(is_canary(name), echo(self.canaries)))
            .groupBy("topic", "partition")
            .agg(*ends, F.collect_list(heard).alias("heard"))
        )
        schema = StructType(found.drop("heard").schema.fields).add("echoes", "binary")
        rows = found.mapInArrow(partial(_fold, self.longest_pause), schema).collect()
        echoes = [each for row in rows for each in pickle.loads(row.echoes)]  # made by our workers
        return Found(self._parts(rows), echoes)

    def _parts(self, found: Sequence[Row]) -> dict[str, OffsetRanges]:
        return {
            family.name: {
                (row.topic, row.partition): (row[f"first_{number}"], row[f"last_{number}"] + 1)
                for row in found
                if row[f"first_{number}"] is not None
            }
            for number, family in enumerate(self.families)
        }


def _fold(longest_pause: Micros, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: the canaries of each partition (``heard``) as pickled ``echoes``."""
    for batch in batches:
        heard = batch["heard"].to_pylist()
        echoes = [pickle.dumps(folded(map(echo_of, each), longest_pause)) for each in heard]
        rest = batch.drop_columns(["heard"])
        yield rest.append_column("echoes", pa.array(echoes, pa.binary()))


@dataclass(frozen=True, slots=True)
class SearchedReader:
    """Looks at the part of a range that names the family; `slice_work.RecordReader`."""

    family: str
    search: RecordSearch
    reader: RecordReader

    def look(self, ranges: OffsetRanges, apart: frozenset[Slot]) -> BatchLook:
        """Look at the records of the family; ``apart`` cannot be read."""
        found = self.search.of(ranges)
        part = found.parts[self.family]
        look = self.reader.look(part, apart) if part else BatchLook()
        look.echoes = list(found.echoes)
        return look
