"""The partitions over which the keys of a family are spread."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconcilers.words.groups import in_groups
from reconcilers.words.key import text_of
from reconcilers.words.model import Slot

BUCKETS = 16
SLOTS_A_READ = 100


def bucket_of(key: str) -> int:
    """The partition of a key's text within a family, equal in every process and version."""
    return zlib.crc32(key.encode()) % BUCKETS


def by_bucket(slots: Iterable[Slot]) -> Iterator[tuple[int, list[str]]]:
    """The keys' texts of slots, each once, by partition; at most `SLOTS_A_READ` together."""
    found: dict[int, list[str]] = defaultdict(list)
    for key in {text_of(slot) for slot in slots}:
        found[bucket_of(key)].append(key)
    for bucket, keys in found.items():
        for some in in_groups(keys, SLOTS_A_READ):
            yield bucket, list(some)
