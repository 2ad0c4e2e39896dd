"""What one scan of a sweep tells a later one of another table, which reads rows in another order.

So neither asks for the other table's rows one by one. What is kept of a row is a fingerprint of all
its cells, in a file for each range of the later table's tokens. A row whose fingerprint is not
there is compared like any other: what is lost (a crash, a worker on another machine, a full disk)
costs time, and nothing else.
"""

from __future__ import annotations

import logging
import marshal
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.words.tokens import range_of

log = logging.getLogger("reconciler")

BYTES = 8
"""Of a fingerprint: that a wrong row has that of a right one of its range, nobody lives to see."""
SAME_ON_EACH_CALL = 2
"""The version of `marshal` that writes equal rows as equal bytes."""
Fingerprints = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Compared:
    """Fingerprints of one sweep for one table, in a folder of their own; ``ranges`` are its."""

    folder: Path
    ranges: int

    def note(self, rows: Iterable[RawRow], token: Callable[[RawCell], int]) -> None:
        """Keep these; ``token`` is that of their first cell, in whose range they are asked for."""
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

    def of(self, number: int) -> Fingerprints:
        """Those of a range of the listing's tokens, in order."""
        try:
            found = self._file(number).read_bytes()
        except OSError:
            found = b""
        return np.sort(np.frombuffer(found[: len(found) // BYTES * BYTES], np.uint64))

    def _file(self, number: int) -> Path:
        return self.folder / str(number)


def are_among(rows: Sequence[RawRow], known: Fingerprints) -> list[bool]:
    """Of each row whether its fingerprint is among these, which are in order."""
    if not len(known) or not rows:
        return [False] * len(rows)
    asked = np.frombuffer(b"".join(map(_fingerprint, rows)), np.uint64)
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    among: list[bool] = (known[places] == asked).tolist()
    return among


def _fingerprint(row: RawRow) -> bytes:
    return blake2b(marshal.dumps(row, SAME_ON_EACH_CALL), digest_size=BYTES).digest()
