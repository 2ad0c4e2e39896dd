"""What only the content of sources (messages) can settle: whether any user can still read a row.

This is the last check. It applies only to an orphan with a received delete, if lineage does not
show which message the delete meant; or, without lineage, to one whose source has no truth at all.
The truth is read again first, at serial consistency: a source that has a row in any group has its
content. What a source belongs to counts as its content: a list of rights has a mailbox.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.evidence import ContentFound, asks_for_content, by_content
from reconcilers.rows.kept import asks_for_owner, asks_for_user
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import Consistent, KeyValue, Micros, Row, Verdict

log = logging.getLogger("reconciler")


class SerialTruth(Protocol):
    """The truth, as step 5 reads it."""

    def truth_serially(self, sources: Iterable[KeyValue]) -> Mapping[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency; sources without are left out."""


class ContentReads(Protocol):
    """Whether sources have content; `streaming.tables.ContentTables` is the real one."""

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        """Those of these sources that have content in any of the family's content tables."""

    def having_owner(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        """Those of these sources that have an owner, read at serial consistency."""

    def having_user(self, things: Sequence[KeyValue]) -> Collection[KeyValue]:
        """Those of these slots' only parts that a user owns; all if no owner is known at all."""


@dataclass(slots=True)
class Contents:
    """Judges rows by content, in one process. It logs once if it cannot. ``delay`` is D (µs)."""

    family: Family
    truth: SerialTruth
    reads: ContentReads
    delay: Micros
    _said: bool = False

    def settle(self, projection: Projection, seen: Seen, verdict: Verdict) -> Verdict:
        """The verdict after content was read; the same verdict if content does not matter."""
        if asks_for_user(projection, seen, verdict):
            users = self._found(self.reads.having_user, [seen.slot.group])
            return Consistent() if users else verdict
        if asks_for_owner(self.family, verdict):
            exist = self._found(self.reads.having_owner, sorted(seen.consulted, key=str))
            return verdict if exist is None or exist else Consistent()
        if projection.is_index or not asks_for_content(self.family, verdict, seen, self.delay):
            return verdict
        content = self._content_of(sorted(seen.consulted, key=str))
        return by_content(self.family, seen, content, verdict, self.delay)

    def _found(
        self,
        read: Callable[[Sequence[KeyValue]], Collection[KeyValue]],
        things: Sequence[KeyValue],
    ) -> Collection[KeyValue] | None:
        """Those of these things that a read finds, None if they cannot be read."""
        try:
            return read(things)
        except (Refused, ReadFailed) as why:
            self._not_known(str(why))
            return None

    def _content_of(self, sources: Sequence[KeyValue]) -> ContentFound:
        if not self.family.truth.kept_in:
            return self._not_known("its tables are not those that this version knows")
        if self.truth.truth_serially(sources):
            return ContentFound.KEPT
        kept = self._found(self.reads.having_content, sources)
        if kept is None:
            return ContentFound.NOT_KNOWN
        return ContentFound.KEPT if kept else ContentFound.GONE

    def _not_known(self, why: str) -> ContentFound:
        if not self._said:
            log.warning("no row is judged by its content: %s", why)
        self._said = True
        return ContentFound.NOT_KNOWN
