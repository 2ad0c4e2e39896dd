"""Fingerprints that one scan of a sweep leaves for a later scan of another table.

The tables have different orders; without fingerprints a scan reads the other table's rows one by
one. A fingerprint covers all cells of a row, in a file for each range of the later table's tokens.
A row without one is compared like any other. Lost files (a crash, a worker on another machine, a
full disk) cost time only.
"""

from __future__ import annotations

import logging
import marshal
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

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
        except FileNotFoundError:
            pass  # the folder is on another machine
        except OSError as failed:
            log.warning("the sweep of the listing takes longer: %s", failed)

    def of(self, numbers: range) -> Fingerprints:
        """The fingerprints of some ranges of tokens, sorted; none where a file cannot be read."""
        return np.sort(np.frombuffer(b"".join(map(self._noted, numbers)), np.uint64))

    def _noted(self, number: int) -> bytes:
        try:
            found = self._file(number).read_bytes()
        except OSError:
            return b""
        return found[: len(found) // BYTES * BYTES]

    def _file(self, number: int) -> Path:
        return self.folder / str(number)


class RowFingerprints:
    """`KeptFingerprints` for rows in the order of their tokens; the last ranges read are cached."""

    def __init__(self, kept: KeptFingerprints, token: Callable[[RawCell], int]) -> None:
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


def _fingerprint(row: RawRow) -> bytes:
    return blake2b(marshal.dumps(row, SAME_ON_EACH_CALL), digest_size=BYTES).digest()
