"""Fingerprints that one scan of a sweep leaves for a later scan of another table.

The tables have different orders; without fingerprints a scan reads the other table's rows one by
one. A fingerprint covers all cells of a row, and is kept by ranges of the later table's tokens: on
one host in files, on a cluster by Spark (`on_executors.py`). A row without one is compared like any
other. Lost fingerprints (a crash, a full disk) cost time only.
"""

from __future__ import annotations

import logging
import marshal
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.words.tokens import range_of

log = logging.getLogger("reconciler")

BYTES = 8
"""Length of a fingerprint: a wrong row of a range of n right rows passes with n in 2**64."""
SAME_ON_EACH_CALL = 2
"""The version of `marshal` that writes equal rows as equal bytes."""
Fingerprints = NDArray[np.uint64]


class SharedFingerprints(Protocol):
    """Fingerprints for one table, which has so many token ``ranges`` here."""

    @property
    def ranges(self) -> int:
        """The number of ranges."""

    def note(self, rows: Iterable[RawRow], token: Callable[[RawCell], int]) -> None:
        """Add rows; ``token`` gives the token of the first cell, by which they are looked up."""

    def of(self, numbers: range) -> Fingerprints:
        """The fingerprints of some ranges of tokens, sorted."""


@dataclass(frozen=True, slots=True)
class CarriedFingerprints:
    """Those that a piece of a sweep is ``given``, sorted, and those that are ``noted`` in it.

    They are noted by the place of their range among all: a number below `PLACES`.
    """

    ranges: int
    given: Fingerprints
    noted: defaultdict[int, bytearray] = field(default_factory=lambda: defaultdict(bytearray))

    def note(self, rows: Iterable[RawRow], token: Callable[[RawCell], int]) -> None:
        """Add rows; ``token`` gives the token of the first cell."""
        for row in rows:
            number = range_of(token(row[0]), self.ranges)
            self.noted[place_of(number, self.ranges)] += _fingerprint(row)

    def of(self, _numbers: range) -> Fingerprints:
        """All that are given: they are of the ranges of the piece, and perhaps of others."""
        return self.given


PLACES = 4096
"""Ranges are told apart up to this number."""


def place_of(number: int, ranges: int) -> int:
    """The place of a range among all of a table, from 0 to `PLACES` - 1."""
    return number * PLACES // ranges


@dataclass(frozen=True, slots=True)
class KeptFingerprints:
    """Fingerprints of one sweep for one table, in one folder; it has so many token ``ranges``."""

    folder: Path
    ranges: int

    def note(self, rows: Iterable[RawRow], token: Callable[[RawCell], int]) -> None:
        """Add rows; ``token`` gives the token of the first cell, by which they are looked up."""
        parts: defaultdict[int, bytearray] = defaultdict(bytearray)
        for row in rows:
            parts[range_of(token(row[0]), self.ranges)] += _fingerprint(row)
        try:
            for number, some in parts.items():
                with self._file(number).open("ab", buffering=0) as file:
                    file.write(some)
        except OSError as failed:
            _tell_once(self.folder, failed.strerror)

    def of(self, numbers: range) -> Fingerprints:
        """The fingerprints of some ranges of tokens, sorted; none where a file cannot be read."""
        return as_sorted(b"".join(map(self._noted, numbers)))

    def _noted(self, number: int) -> bytes:
        try:
            found = self._file(number).read_bytes()
        except OSError as failed:
            if not isinstance(failed, FileNotFoundError) or not self.folder.is_dir():
                _tell_once(self.folder, failed.strerror)
            return b""
        return found[: len(found) // BYTES * BYTES]

    def _file(self, number: int) -> Path:
        return self.folder / str(number)


class RowFingerprints:
    """`SharedFingerprints` of rows in the order of their tokens; the last ranges are cached."""

    def __init__(self, kept: SharedFingerprints, token: Callable[[RawCell], int]) -> None:
        self._kept, self._token = kept, token
        self._of = lru_cache(maxsize=1)(kept.of)

    def note(self, rows: Iterable[RawRow]) -> None:
        """Add rows, to be looked up by the token of their first cell."""
        self._kept.note(rows, self._token)

    def around(self, rows: Sequence[RawRow], partition: int) -> Fingerprints:
        """The fingerprints from the range of the first row to that of the last, sorted.

        A row's cell at ``partition`` has its token.
        """
        first, last = (
            range_of(self._token(row[partition]), self._kept.ranges) for row in (rows[0], rows[-1])
        )
        return self._of(range(first, last + 1))


def are_among(rows: Sequence[RawRow], known: Fingerprints) -> list[bool]:
    """For each row whether its fingerprint is among ``known``, which is sorted."""
    if not len(known) or not rows:
        return [False] * len(rows)
    asked = np.frombuffer(b"".join(map(_fingerprint, rows)), np.uint64)
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    among: list[bool] = (known[places] == asked).tolist()
    return among


def as_sorted(found: bytes) -> Fingerprints:
    """Whole fingerprints, one after the other, as a sorted array."""
    return np.sort(np.frombuffer(found, np.uint64))


@cache
def _tell_once(folder: Path, why: str) -> None:
    """Once a process, folder and reason: the sweep goes on without fingerprints."""
    log.warning("the sweep takes longer, fingerprints are lost in %s: %s", folder, why)


def _fingerprint(row: RawRow) -> bytes:
    return blake2b(marshal.dumps(row, SAME_ON_EACH_CALL), digest_size=BYTES).digest()
