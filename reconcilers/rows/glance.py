"""The glance: is a slot plainly right, by the bytes that Cassandra sent? Pure.

=========================  ========================================================================
read                       a slot is plainly right only if
=========================  ========================================================================
its wakes                  are changes that name its whole key: no delete, no expiry, no look again
what is remembered of it   is one entry: seen in the truth, not expiring, recorded since watching
                           began; of the one source that its wakes name, if they name any
the row of the listing     names that source
the truth of the source    is one row, for this slot, that belongs in the listing, with nothing
                           required null or empty; every copied cell is the listing's, byte by byte
each index                 has a row exactly if the truth row belongs there; one that collects has
                           all that the truth row would add to its group's row
=========================  ========================================================================

For such a slot `Look.at` finds no suspect, writes nothing to lineage, and wakes nothing. Every
other slot is looked at, so a wrong "no" costs one look. In a scan of the truth, a slot that is
right but for lineage (`to_record`) is recorded there as by a look. Equal bytes are equal cells,
because both columns have one type. A required cell without bytes is not right: a driver reads it as
null.

Each function gets the slots that the one before it left, so nothing more is read for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconcilers.declared.family import Family
from reconcilers.declared.raw import BIGINT, RawCell, RawKey, RawRow, RawShape
from reconcilers.rows.belonging import Belonging
from reconcilers.words.model import KeyValue, Micros, Slot, Wake

Elements = frozenset[str]
NONE: Elements = frozenset()
TRUE, FALSE = b"\x01", b"\x00"
NEGATIVE = b"\x80"
"""No time has its highest bit set, so times and their bytes have one order."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What a glance needs of wakes: lists of equal length and order.

    ``sources`` are Cassandra's bytes, None if a wake names none. A wake is ``plain`` if it names
    its whole key and reports only a change of an existing row.
    """

    keys: Sequence[tuple[KeyValue | None, ...]]
    sources: Sequence[RawCell]
    plain: Sequence[bool]
    changes: Sequence[int]

    @classmethod
    def of(cls, shape: RawShape, wakes: Sequence[Wake]) -> Keys:
        """The keys of these wakes."""
        as_bytes = shape.encode[-1]
        return cls(
            [wake.key for wake in wakes],
            [None if wake.source is None else as_bytes(wake.source) for wake in wakes],
            [wake.whole and tells_of_a_change(wake) for wake in wakes],
            [wake.changes for wake in wakes],
        )

    def without(self, apart: Collection[Slot]) -> Keys:
        """The keys with these slots no longer plain, so that they are looked at."""
        if not apart:
            return self
        places = {slot.key for slot in apart}
        pairs = zip(self.keys, self.plain, strict=True)
        return replace(self, plain=[plain and key not in places for key, plain in pairs])


@dataclass(frozen=True, slots=True)
class Asked:
    """The slots that may be glanced at, with the numbers of their wakes; see `asked`.

    ``named`` has the source that each wake names, by the wake's number. A slot of one of the
    ``others`` (sources) is looked at: a wake that names no slot may mean it.
    """

    wakes_of: Mapping[RawKey, Sequence[int]]
    named: Sequence[RawCell]
    others: Collection[RawCell]


def asked(shape: RawShape, keys: Keys) -> Asked:
    """The slots with plain wakes only. Wakes of one key must be adjacent: it is encoded once."""
    encode = shape.encode[:-1]
    found: dict[RawKey, list[int]] = {}
    more: list[tuple[RawCell, RawKey]] = []
    before: tuple[KeyValue | None, ...] | None = None
    raw: RawKey = ()
    for number, (key, plain) in enumerate(zip(keys.keys, keys.plain, strict=True)):
        if key != before:
            before, raw = key, _raw(encode, key)
        if plain:
            found.setdefault(raw, []).append(number)
        else:
            more.append((keys.sources[number], raw))
    others: set[RawCell] = set()
    for source, parts in more:
        if None not in parts:
            found.pop(parts, None)
        elif source is not None:
            others.add(source)
        else:
            for each in [each for each in found if each[0] == parts[0]]:
                del found[each]
    return Asked(found, keys.sources, others)


def slot_and_source(shape: RawShape, slot: Slot, source: KeyValue) -> tuple[RawKey, RawCell]:
    """A slot and its source as Cassandra's bytes."""
    *encode, as_source = shape.encode
    return _raw(encode, slot.key), as_source(source)


def scanned(rows: Sequence[RawRow], width: int, source: int | None) -> Asked:
    """The slots of a scan's rows, as if a change of each had woken it.

    Their first ``width`` cells are the key. ``source`` is the place of their source, or None.
    """
    found: dict[RawKey, list[int]] = {}
    for number, row in enumerate(rows):
        if None not in row[:width]:
            found.setdefault(row[:width], []).append(number)
    return Asked(found, [None if source is None else row[source] for row in rows], ())


def _raw(encode: Iterable[Callable[[KeyValue], bytes]], key: Iterable[KeyValue | None]) -> RawKey:
    pairs = zip(encode, key, strict=True)
    return tuple([None if value is None else as_bytes(value) for as_bytes, value in pairs])


def tells_of_a_change(wake: Wake) -> bool:
    """Whether a wake reports only a change of an existing row."""
    return (
        not wake.looked_again
        and wake.deleted_at is None
        and wake.deleted_from is None
        and wake.expires_at is None
    )


def remembered(
    of: Asked, entries: Iterable[RawRow], watched_since: Micros | None
) -> dict[RawKey, RawCell]:
    """The slots for which lineage is complete, with their source.

    An entry has its key, source, whether it was seen in the truth, when it was recorded (µs), and
    its remaining time to live. ``watched_since`` is µs.
    """
    since, named = BIGINT.pack(watched_since or 0), of.named
    found: dict[RawKey, RawCell] = {}
    for key, entry in _alone(entries, slice(-4)).items():
        if entry is None or key not in of.wakes_of:
            continue
        source, in_truth, recorded_at, expires = entry[-4:]
        if in_truth != TRUE or expires is not None or source in of.others:
            continue
        if recorded_at is None or not since <= recorded_at < NEGATIVE:
            continue
        if all(named[number] in (None, source) for number in of.wakes_of[key]):
            found[key] = source
    return found


def to_record(
    of: Asked, entries: Iterable[RawRow], known: Collection[RawKey]
) -> dict[RawKey, RawCell]:
    """The slots of which lineage has no read yet, with the one source that all their rows name.

    ``known`` are `remembered`. A look records an expiring entry, or one of another source.
    """
    there = _alone(entries, slice(-4))
    found: dict[RawKey, RawCell] = {}
    for key, numbers in of.wakes_of.items():
        (source, *others), entry = {of.named[number] for number in numbers}, there.get(key)
        absent = key not in there
        unread = entry is not None and entry[-4] == source and entry[-1] is None
        if key not in known and not others and (absent or unread):
            found[key] = source
    return found


def listed(
    shape: RawShape, sources: Mapping[RawKey, RawCell], rows: Iterable[RawRow]
) -> dict[RawKey, RawRow]:
    """The slots whose row of the listing names the remembered source, with that row."""
    at, found = shape.source[1], _alone(rows, slice(len(shape.encode) - 1))
    return {
        key: row
        for key, source in sources.items()
        if (row := found.get(key)) is not None and row[at] == source
    }


def true(
    shape: RawShape,
    belongs: Belonging,
    rows: Mapping[RawKey, RawRow],
    truths: Iterable[RawRow],
) -> dict[RawKey, RawRow]:
    """The slots whose source has one truth row, equal to the listing's, with that row."""
    width, (place, named) = len(shape.encode) - 1, shape.source
    of_source = _alone(truths, slice(place, place + 1))
    found = {}
    for key, row in rows.items():
        truth = of_source.get((row[named],))
        if truth is None or truth[:width] != key or not _repeated(shape, truth, row):
            continue
        if belongs.of(truth):
            found[key] = truth
    return found


def _repeated(shape: RawShape, truth: RawRow, row: RawRow) -> bool:
    of_truth, of_listing = shape.copied
    if truth[of_truth:] != row[of_listing:] or not _complete(shape, truth):
        return False
    return all(truth[one] == row[other] for one, other in shape.same)


def _complete(shape: RawShape, truth: RawRow) -> bool:
    return all(truth[at] for at in shape.required)


def collected(
    width: int,
    truths: Mapping[RawKey, RawRow],
    adding: Collection[RawKey],
    elements: Callable[[RawRow], Elements],
    there: Mapping[RawKey, Elements],
) -> dict[RawKey, RawRow]:
    """The slots that add nothing to what their group has collected; only ``adding`` may add.

    ``elements`` gives those of a truth row; ``there`` has those of each group, whose key is the
    first ``width`` cells.
    """
    return {
        key: truth
        for key, truth in truths.items()
        if key not in adding or elements(truth) <= there.get(key[:width], NONE)
    }


def indexed(
    belongs: Belonging, truths: Mapping[RawKey, RawRow], keys: Collection[RawKey]
) -> dict[RawKey, RawRow]:
    """The slots that this index has exactly if they belong there; ``keys`` are its rows' keys."""
    return {key: truth for key, truth in truths.items() if belongs.of(truth) == (key in keys)}


# --- the listing first, the truth later


def can_expect(family: Family, shape: RawShape) -> bool:
    """Whether a listing row has all columns that its indexes collect."""
    collected = {each.collects for each in family.projections[1:]} - {None}
    return collected <= set(shape.listing)


def expected(named: int, row: RawRow, in_indexes: Iterable[bool]) -> RawRow:
    """The truth's statement that makes a listing row right; the source, at ``named``, is first."""
    return (row[named], *row, *(TRUE if there else FALSE for there in in_indexes))


def told(
    shape: RawShape,
    listed_if: Belonging,
    indexed_if: Sequence[Belonging],
    truths: Iterable[RawRow],
) -> Iterator[tuple[RawRow, RawRow]]:
    """Truth rows that may be right, with their `expected`; ``truths`` has all of each source."""
    place, named = shape.source
    for truth in _alone(truths, slice(place, place + 1)).values():
        if truth is None or not _complete(shape, truth) or not listed_if.of(truth):
            continue
        yield truth, expected(named, shape.listed(truth), [each.of(truth) for each in indexed_if])


def _alone(rows: Iterable[RawRow], key: slice) -> dict[RawKey, RawRow | None]:
    """Rows by a part of them; None if several rows share it."""
    found: dict[RawKey, RawRow | None] = {}
    for row in rows:
        of = row[key]
        found[of] = None if of in found else row
    return found
