"""The counters in `reconcile explain`: what mailboxes list, and what their counters store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from checkpoints.cassandra import CassandraTallies
from checkpoints.codec import Json, finding_to_json
from checkpoints.journal import Journal
from checkpoints.tallies import Tallies
from reconcilers.declared.family import Family, Schema
from reconcilers.declared.tally import QuotaRoot, Sums, Tally, summed, total
from reconcilers.words.model import Slot
from streaming.commands.arguments.finding_filter import NAMESPACE
from streaming.commands.look.places_shown import iso
from streaming.commands.wiring.kept_tallies import kept_tallies
from streaming.settings import Settings
from streaming.tables import CounterTables, connect
from streaming.tables.own_keyspace import OwnStores


@dataclass(frozen=True, slots=True)
class ExplainedCounters:
    """A mailbox or a user, as lines and as JSON."""

    lines: list[str]
    object: Json


@dataclass(frozen=True, slots=True)
class CounterExplainer:
    """Reads the rows of mailboxes, their counters, chunks and open findings."""

    tables: CounterTables
    tallies: Tallies
    journal: Journal
    kept: tuple[Family, ...]

    def owner(self, mailbox: UUID) -> QuotaRoot | None:
        """The owner of a mailbox; None if James has no such mailbox."""
        return self.tables.owner(mailbox)

    def mailboxes(self, user: str) -> list[UUID]:
        """The mailboxes that the user's paths name."""
        return sorted(self.tables.mailboxes(QuotaRoot(NAMESPACE, user)), key=str)

    def mailbox(self, mailbox: UUID) -> ExplainedCounters:
        """What the mailbox lists, beside its counters. Reads the whole mailbox."""
        root = self.owner(mailbox)
        listed = summed(self.tables.listed(mailbox))
        whose = f"of {root}" if root else "which James has no more"
        lines = [f"mailbox {mailbox}, {whose}", f"  listed now: {_sums(listed)}"]
        told: Json = {"mailboxid": str(mailbox), "owner": str(root), "listed": _json(listed)}
        lines += [*self._counters(mailbox, listed, told), self._chunks(mailbox)]
        return ExplainedCounters(lines, told)

    def quota(self, user: str) -> ExplainedCounters:
        """What the user's mailboxes list together, beside the counters of the quota."""
        root = QuotaRoot(NAMESPACE, user)
        listed = total([summed(self.tables.listed(each)) for each in self.mailboxes(user)])
        told: Json = {"quotaroot": str(root), "listed": _json(listed)}
        lines = [f"quota root {root}", f"  listed now: {_sums(listed)}"]
        return ExplainedCounters([*lines, *self._counters(str(root), listed, told)], told)

    def _counters(self, key: UUID | str, listed: Sums, told: Json) -> Iterator[str]:
        for family in self.kept:
            for tally in family.tallies:
                if tally.per_quota_root is isinstance(key, str):
                    yield from self._counter(family, tally, key, listed, told)

    def _counter(
        self, family: Family, tally: Tally, key: UUID | str, listed: Sums, told: Json
    ) -> Iterator[str]:
        stored = self.tables.stored(tally, key)
        finding = self.journal.recall(family, tally.name, [Slot(key)]).get(Slot(key))
        told[tally.name] = {
            "stored": None if stored is None else _json(stored),
            "finding": None if finding is None else finding_to_json(finding, family),
        }
        expected = {each: listed[each] for each in tally.cells}
        same = (stored or dict.fromkeys(tally.cells, 0)) == expected
        says = "no row" if stored is None else _sums(stored)
        verdict = "as listed" if same else "DIFFERS"
        row = tally.row_of(key)
        yield f"  {tally.name}: {says}: {verdict}{f' ({row})' if row else ''}"
        if finding is not None:
            since = iso(finding.found_at)
            yield f"    {finding.kind} {finding.state} since {since}: {finding.told}"
        elif not same:
            yield "    no finding: the stream judges it when nothing has changed for a while"

    def _chunks(self, mailbox: UUID) -> str:
        known = self.tallies.of_mailbox(mailbox)
        stale = sum(each.stale(0) for each in known.chunks.values())
        whole = f"counted whole at {iso(known.whole_at)}" if known.whole else "never counted whole"
        return f"  chunks of UIDs: {len(known.chunks)} known, {stale} changed since; {whole}"


def _sums(sums: Sums) -> str:
    return ", ".join(f"{each} {number}" for each, number in sums.items())


def _json(sums: Sums) -> dict[str, int]:
    return {str(each): number for each, number in sums.items()}


def counter_explainer(
    settings: Settings, family: Family, own: OwnStores, schema: Schema
) -> CounterExplainer:
    """An explainer over Cassandra, for the counters that are kept."""
    session, cassandra = connect(settings.cassandra), settings.cassandra
    tables = CounterTables(session, cassandra, family, settings.tally.rows_per_second)
    kept = kept_tallies(settings, schema)
    tallies = CassandraTallies(own.store, settings.tally.chunk)
    return CounterExplainer(tables, tallies, own.journal, kept)
