"""Whether our keyspace was truncated or restored; read together with the pauses."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.generations import GenerationStore
from reconcilers.limits.generation import doubt, is_new, next_of, oldest
from reconcilers.words.model import Micros


@dataclass(slots=True)
class OwnKeyspace:
    """Our keyspace as one process sees it, in several threads. ``newest``: generation seen (µs).

    Each answer is compared with the generation known at the time of its request: another thread may
    raise the generation meanwhile.
    """

    store: GenerationStore
    newest: Micros | None = None

    def expect(self, seen: Micros | None) -> None:
        """Take in a generation that another process has seen."""
        if seen is not None and (self.newest is None or seen > self.newest):
            self.newest = seen

    def begin(self, outside: Micros | None, now: Micros) -> None:
        """Start with the generation that is kept outside the keyspace.

        A keyspace that never had one gets its first. Raises `Retryable`, `Refused`.
        """
        found = self.store.read()
        first = next_of(found, None, now)
        if is_new(found, outside) and self.store.replace(found, first):
            self.expect(first)
        self.expect(outside)

    def why(self) -> str | None:
        """Why the keyspace is in doubt, None if it is not. Raises `Retryable`, `Refused`."""
        least = self.newest
        found = self.store.read()
        why = doubt(found, least)
        if why is None:
            self.expect(oldest(found))
        return why

    def grow(self, now: Micros) -> None:
        """Raise the generation, unless the keyspace is in doubt. Raises `Retryable`, `Refused`."""
        least = self.newest
        found = self.store.read()
        if doubt(found, least) is None:
            by = next_of(found, least, now)
            if self.store.replace(found, by):
                self.expect(by)
