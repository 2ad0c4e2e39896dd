"""Keys and rows as undecoded bytes: which columns are read, in which order. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any
from uuid import UUID

from reconcilers.declared.family import Family
from reconcilers.words.key import TEXTS, UUIDS, KeyColumn
from reconcilers.words.model import KeyValue

RawCell = bytes | None
RawRow = tuple[RawCell, ...]
RawKey = RawRow
"""The key of a slot: the first cells of a row."""
BIGINT = struct.Struct(">q")
"""The encoding of a bigint or a timestamp (µs) in our tables."""


@dataclass(frozen=True, slots=True)
class RawShape:
    """The columns of raw rows in the order in which they are read, and the places of some of them.

    ``listing`` begins with the slot's key, and ``truth`` with the columns that lead to it. Both end
    with the copied columns, from the places ``copied`` on. Each pair holds a place in the truth and
    one in the listing. ``same`` are the pairs of columns that are copied and also a key of the
    truth. ``source`` is the pair of columns that name the source. ``required`` are places in the
    truth. ``encode`` has an encoder for each part of the key, and at the end one for the source.
    """

    truth: tuple[str, ...]
    listing: tuple[str, ...]
    copied: tuple[int, int]
    same: tuple[tuple[int, int], ...]
    source: tuple[int, int]
    required: tuple[int, ...]
    encode: tuple[Callable[[Any], bytes], ...]

    def listed(self, truth: RawRow) -> RawRow:
        """The row that the listing has for this truth row if the listing is right."""
        width, (of_truth, _) = len(self.encode) - 1, self.copied
        return (*truth[:width], *(truth[one] for one, _ in self.same), *truth[of_truth:])


def raw_shape(family: Family) -> RawShape | None:
    """The shape of a bound family's raw rows, None if the family cannot be read undecoded.

    That is a family without projections, with a derived truth or with conversions of cells, or
    whose listing does not name the source. It is also one with a key type that our own tables
    encode in another way.
    """
    encode = [encoder(column) for column in (*family.key, family.truth.source)]
    converted = any(each.conversions for each in family.projections)
    if not family.projections or converted or family.truth.derive or None in encode:
        return None
    truth, listing = family.truth, family.listing
    keys = tuple(dict.fromkeys((*truth.slot, truth.source.name)))
    same = tuple(column for column in listing.columns if column in keys)
    copied = tuple(column for column in listing.columns if column not in keys)
    read = {column for each in family.projections for column in each.columns}
    more = tuple(sorted((read | set(truth.required)) - {*keys, *copied}))
    of_truth, of_listing = (*keys, *more, *copied), (*listing.key, *same, *copied)
    if listing.identity not in of_listing or listing.collects is not None:
        return None
    return RawShape(
        truth=of_truth,
        listing=of_listing,
        copied=(len(keys) + len(more), len(listing.key) + len(same)),
        same=tuple((of_truth.index(each), of_listing.index(each)) for each in same),
        source=(of_truth.index(truth.source.name), of_listing.index(listing.identity)),
        required=tuple(of_truth.index(each) for each in truth.required),
        encode=tuple(each for each in encode if each is not None),
    )


def encoder(column: KeyColumn) -> Callable[[Any], bytes] | None:
    """A function to Cassandra's bytes, equal in James's tables and ours; None if those differ."""
    if column.type in UUIDS:
        return attrgetter("bytes")
    if column.type == "bigint":
        return BIGINT.pack
    return str.encode if column.type in TEXTS else None


def decoder(column: KeyColumn) -> Callable[[bytes], KeyValue]:
    """The inverse of `encoder`: from bytes to a part of a key."""
    if column.type in UUIDS:
        return lru_cache(maxsize=10_000)(_uuid)
    return _bigint if column.type == "bigint" else bytes.decode


def _uuid(cell: bytes) -> UUID:
    return UUID(bytes=cell)


def _bigint(cell: bytes) -> int:
    number: int = BIGINT.unpack(cell)[0]
    return number
