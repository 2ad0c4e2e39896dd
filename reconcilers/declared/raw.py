"""Keys and rows as the server sends them, undecoded: which columns, in which order. Pure."""

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
"""A slot's key: the first cells of a row."""
BIGINT = struct.Struct(">q")
"""A bigint, or the microseconds of a timestamp of ours, as Cassandra sends it."""


@dataclass(frozen=True, slots=True)
class RawShape:
    """The columns of raw rows, in the order in which they are read, and where some of them stand.

    ``listing`` begins with the slot's key, ``truth`` with the columns that lead to it. Both end
    with the same columns, the copied ones: from ``copied`` on, a number for each side (the truth's
    first). ``same`` are pairs of places, one of each side, of what is copied and a key of the
    truth. ``source`` is where each side names the source, ``required`` where the truth has what
    makes a row complete. ``encode`` makes a key's parts, and the source at last, into bytes.
    """

    truth: tuple[str, ...]
    listing: tuple[str, ...]
    copied: tuple[int, int]
    same: tuple[tuple[int, int], ...]
    source: tuple[int, int]
    required: tuple[int, ...]
    encode: tuple[Callable[[Any], bytes], ...]

    def listed(self, truth: RawRow) -> RawRow:
        """The listing's row of this truth where it is plainly right."""
        width, (of_truth, _) = len(self.encode) - 1, self.copied
        return (*truth[:width], *(truth[one] for one, _ in self.same), *truth[of_truth:])


def raw_shape(family: Family) -> RawShape | None:
    """The shape of a bound family's raw rows, None for a family that cannot be read so.

    That is one without projections, one whose listing does not name the source, or one with a key
    that our own tables hold in another type.
    """
    encode = [encoder(column) for column in (*family.key, family.truth.source)]
    if not family.projections or None in encode:
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
    """As Cassandra sends it, in James's tables as in ours; None where the two differ."""
    if column.type in UUIDS:
        return attrgetter("bytes")
    if column.type == "bigint":
        return BIGINT.pack
    return str.encode if column.type in TEXTS else None


def decoder(column: KeyColumn) -> Callable[[bytes], KeyValue]:
    """What `encoder` has made into bytes, as a part of a key again."""
    if column.type in UUIDS:
        return lru_cache(maxsize=10_000)(_uuid)
    return _bigint if column.type == "bigint" else bytes.decode


def _uuid(cell: bytes) -> UUID:
    return UUID(bytes=cell)


def _bigint(cell: bytes) -> int:
    number: int = BIGINT.unpack(cell)[0]
    return number
