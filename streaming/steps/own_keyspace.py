"""Whether our own keyspace is as it was left: asked with what a person has paused."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.generations import GenerationStore
from reconcilers.limits.generation import doubt, is_new, next_of, oldest
from reconcilers.words.model import Micros


@dataclass(slots=True)
class OwnKeyspace:
    """As one process sees it, in several threads. ``newest`` is the newest generation seen (µs).

    Each question is compared with what was known when it was asked: another thread may raise the
    generation while the answer is on its way.
    """

    store: GenerationStore
    newest: Micros | None = None

    def expect(self, seen: Micros | None) -> None:
        """Another process has seen this generation."""
        if seen is not None and (self.newest is None or seen > self.newest):
            self.newest = seen

    def begin(self, outside: Micros | None, now: Micros) -> None:
        """A stream starts, and this generation stands outside the keyspace.

        A keyspace that never had one gets its first. Raises `Retryable`, `Refused`.
        """
        found = self.store.read()
        first = next_of(found, None, now)
        if is_new(found, outside) and self.store.replace(found, first):
            self.expect(first)
        self.expect(outside)

    def why(self) -> str | None:
        """Why it is not as it was left, None where it is. Raises `Retryable`, `Refused`."""
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
