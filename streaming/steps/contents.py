"""What only the content of sources (messages) can settle: whether anybody can read a row at all.

Asked last, and only of an orphan of which a delete was heard and memory does not know whom it
meant. The truth comes first, once more at serial consistency: a source that lives anywhere, another
group included, has its content.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.evidence import ContentFound, asks_for_content, by_content
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import KeyValue, Micros, Row, Verdict

log = logging.getLogger("reconciler")


class SerialTruth(Protocol):
    """The truth, as it is confirmed."""

    def truth_serially(self, sources: Iterable[KeyValue]) -> Mapping[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency; sources without are left out."""


class ContentReads(Protocol):
    """Whether there is content; `streaming.tables.ContentTables` is the real one."""

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        """Those of these sources that have content in any of the family's tables of it."""


@dataclass(slots=True)
class Contents:
    """One process's; that content may not be read is said once. ``delay`` is D (µs)."""

    family: Family
    truth: SerialTruth
    reads: ContentReads
    delay: Micros
    _said: bool = False

    def settle(self, projection: Projection, seen: Seen, verdict: Verdict) -> Verdict:
        """The verdict once content was asked for; the same where that settles nothing."""
        if projection.is_index or not asks_for_content(self.family, verdict, seen, self.delay):
            return verdict
        content = self._content_of(sorted(seen.consulted, key=str))
        return by_content(self.family, seen, content, verdict, self.delay)

    def _content_of(self, sources: Sequence[KeyValue]) -> ContentFound:
        if not self.family.truth.contents:
            return self._not_known("its tables are not those that this version knows")
        if self.truth.truth_serially(sources):
            return ContentFound.KEPT
        try:
            kept = self.reads.having_content(sources)
        except (Refused, ReadFailed) as why:
            return self._not_known(str(why))
        return ContentFound.KEPT if kept else ContentFound.GONE

    def _not_known(self, why: str) -> ContentFound:
        if not self._said:
            log.warning("no row is judged by its content: %s", why)
        self._said = True
        return ContentFound.NOT_KNOWN
