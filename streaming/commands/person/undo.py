"""``reconcile findings --undo``: takes repairs back and puts their keys on hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from checkpoints.cassandra import CassandraLineage, CassandraPauses, CassandraRounds
from checkpoints.clock import now_micros
from checkpoints.journal import Journal
from checkpoints.no_lineage import NoLineage
from reconcilers.declared.family import Family, Projection, bind
from reconcilers.declared.tally import Tally
from reconcilers.declared.writes import AddToCounter, Write
from reconcilers.limits.breakers import OF_COUNTERS, Breaker
from reconcilers.limits.hold import Hold
from reconcilers.limits.write_target import WriteTarget, correction_of, repair_of
from reconcilers.rows.finding import Finding
from reconcilers.rows.undo import NO_REPAIR, UNDO, last_repair
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import slot_of, text_of
from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import why_of
from streaming.commands.arguments.finding_filter import FindingFilter, slots_named
from streaming.commands.person.orders import Orders
from streaming.commands.wiring.generations import compared
from streaming.commands.wiring.kept_tallies import kept_tallies
from streaming.commands.wiring.trouble import trouble_of
from streaming.counters.undo import CounterUndo
from streaming.settings import Settings
from streaming.steps.pauses import PauseWatch
from streaming.steps.undo import RowUndo, Undoing, Undone
from streaming.tables import CounterTables, Tables, connect, schema_of
from streaming.tables.own_keyspace import OwnStores
from streaming.tables.rate_limit import RateLimiter

NamedSlot = tuple[Family, str, Slot]
"""A family, a projection or tally, a slot."""
Planned = tuple[Write | AddToCounter, ...]


class UndoOf(Protocol):
    """Undoes the repairs of one family."""

    def plan(self, repair: Finding) -> Planned | str:
        """The writes of an undo, or why it is refused. Only reads."""

    def carry_out(self, repair: Finding, hold: Hold) -> Undone:
        """Put the key on hold and undo its repair."""


@dataclass(frozen=True, slots=True)
class UndoDesk:
    """Undoes the last repair of each key; ``pace`` is called before each write."""

    journal: Journal
    by_family: Mapping[str, tuple[Family, UndoOf]]
    orders: Orders
    pace: RateLimiter

    def undo(self, keys: frozenset[str] | None, wanted: FindingFilter) -> int:
        """Undo the repairs of these keys, or with None all repairs of a time.

        Asks if all are meant, or if a key has repairs of several systems. Returns 1 if a named one
        was not undone. Raises `Misconfigured` if all are meant and no time is given, or if a state
        is given.
        """
        if wanted.state is not None:
            raise Misconfigured("--state: an undo does not depend on the state of a repair")
        if keys is None and wanted.since is None:
            raise Misconfigured("--undo --all needs --since: from when on repairs are undone")
        missing = set(keys or ())
        found: list[tuple[Family, Finding | str, str]] = []
        for family, name, slot in self._places(keys, wanted):
            last = last_repair(self.journal.history(family, name, slot))
            repair = _meant(wanted, family, last)
            if repair is None:
                continue
            missing.discard(text_of(slot))
            found.append((family, repair, f"{text_of(slot)} {name}"))
        if not self._agreed(keys, found):
            return 1
        done = sum([self._one(*each) for each in found])
        for key in sorted(missing):
            print(f"unknown  {key}: {NO_REPAIR}")
        self._tell(done)
        wanted_ones = [each for _, each, _ in found if keys or isinstance(each, Finding)]
        return int(bool(missing) or done < len(wanted_ones))

    def _agreed(
        self, keys: frozenset[str] | None, found: Iterable[tuple[Family, Finding | str, str]]
    ) -> bool:
        """Whether a person agrees, if all are meant, or several systems at one key."""
        repairs = [(each, where) for _, each, where in found if isinstance(each, Finding)]
        if keys is not None:
            if len(repairs) == len({each.slot for each, _ in repairs}):
                return True
            print(*(f"{where}: {each.told}" for each, where in repairs), sep="\n")
        kinds = Counter(each.kind.value for each, _ in repairs)
        return self.orders.agree(kinds, "repairs will be undone")

    def _tell(self, done: int) -> None:
        if self.orders.dry_run:
            print(f"{done} would be undone; nothing done")
        elif done:
            print(f"{done} undone, and on hold: `reconcile findings --release KEY` ends that")
        else:
            print("nothing done")

    def _one(self, family: Family, repair: Finding | str, where: str) -> bool:
        """Whether the repair was undone, or would be in a dry run."""
        if isinstance(repair, str):
            print(f"refused  {where}: {repair}")
            return False
        undoing = self.by_family[family.name][1]
        if self.orders.dry_run:
            planned = undoing.plan(repair)
            refused = isinstance(planned, str)
            told = planned if isinstance(planned, str) else "; ".join(map(_said, planned))
            print(f"{'refused ' if refused else 'would be undone '} {where}: {told}")
            return not refused
        self.pace.spend(1)
        became = undoing.carry_out(repair, self.orders.hold(family, repair))
        print(f"{became.what.value:<8} {where}: {became.sentence}")
        return became.what is Undoing.DONE

    def _places(self, keys: frozenset[str] | None, wanted: FindingFilter) -> Iterable[NamedSlot]:
        return self._repaired(wanted) if keys is None else self._named(keys, wanted)

    def _named(self, keys: frozenset[str], wanted: FindingFilter) -> Iterator[NamedSlot]:
        families = [family for family, _ in self.by_family.values()]
        for key in sorted(keys):
            for family, slot in slots_named(families, key):
                for name in family.names:
                    if wanted.projection in (None, name):
                        yield family, name, slot

    def _repaired(self, wanted: FindingFilter) -> list[NamedSlot]:
        """The places where the log has a repair in this time; each once."""
        found: dict[tuple[str, str, Slot], NamedSlot] = {}
        for day in wanted.days(self.orders.clock()):
            for line in filter(wanted.has, self.journal.log(day)):
                known = self.by_family.get(str(line["family"]))
                if known is not None and line["writes"] and line["batch"] != UNDO:
                    family, name = known[0], str(line["projection"])
                    slot = slot_of(family.key, line)
                    found[family.name, name, slot] = (family, name, slot)
        return list(found.values())


# --- its parts


def undo_desk(settings: Settings, own: OwnStores, orders: Orders) -> UndoDesk:
    """An undo over Cassandra, at the pace of ``repair.writes_per_minute``."""
    session, cassandra = connect(settings.cassandra), settings.cassandra
    schema = schema_of(session, cassandra.keyspace)
    keyspace = None if orders.while_paused else compared(settings, own.store)
    kept = CassandraPauses(own.store, cassandra.keyspace)
    pauses = PauseWatch(kept, now_micros, keyspace=keyspace)
    stopped = Stopped(pauses, own.journal, orders)
    by_family: dict[str, tuple[Family, UndoOf]] = {}
    for family in (bind(each, schema) for each in settings.families() if each.projections):
        tables = Tables(session, cassandra, family)
        lineage = CassandraLineage(own.store, family) if family.remembered else NoLineage()
        undoing = RowUndo(family, tables, own.journal, lineage, stopped.why, now_micros)
        by_family[family.name] = family, undoing
    for family in kept_tallies(settings, schema):
        by_family[family.name] = family, _of_counters(settings, own, family, stopped)
    pace = RateLimiter(max(1, settings.repair.writes_per_minute // 60))
    return UndoDesk(own.journal, by_family, orders, pace)


def _of_counters(
    settings: Settings, own: OwnStores, family: Family, stopped: Stopped
) -> CounterUndo:
    session, pace = connect(settings.cassandra), settings.tally.rows_per_second
    trouble = trouble_of(settings, None)
    return CounterUndo(
        family=family,
        tables=CounterTables(session, settings.cassandra, settings.families()[0], pace),
        journal=own.journal,
        rounds=CassandraRounds(own.store),
        stopped=lambda tally: why_of(trouble()) or stopped.why_of_tally(tally),
        clock=now_micros,
    )


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why nothing may be written now: a pause or an open breaker, unless a person insists.

    A pilot does not stop an undo, since a person has named its keys.
    """

    pauses: PauseWatch
    journal: Journal
    orders: Orders

    def why(self, projection: Projection, kind: Kind) -> str | None:
        """Why no row may be written, or None. Raises `Retryable` if that is unknown."""
        target = repair_of(projection, kind)
        breakers = {Breaker.REPAIRS, *((Breaker.REMOVALS,) if target.is_removal else ())}
        return self._why(target, breakers)

    def why_of_tally(self, tally: Tally) -> str | None:
        """Why no counter may be written, or None. Raises `Retryable` if that is unknown."""
        return self._why(correction_of(tally), OF_COUNTERS)

    def _why(self, target: WriteTarget, breakers: Collection[Breaker]) -> str | None:
        if self.orders.while_paused:
            return None
        opened = self.journal.breakers()
        reasons = [f"breaker {each} is open: {opened[each]}" for each in breakers if each in opened]
        paused = self.pauses.why(target)
        if paused is not None:
            reasons.append(f"repairs are {paused}")
        return f"{reasons[0]} (--while-paused undoes all the same)" if reasons else None


def _meant(wanted: FindingFilter, family: Family, repair: Finding | str) -> Finding | str | None:
    """The repair to undo, or why it is refused; None if another repair is meant."""
    if isinstance(repair, str):
        return None if repair == NO_REPAIR else repair
    if not replace(wanted, since=None, until=None).takes(family, repair):
        return None
    if wanted.until is not None and repair.tried_at >= wanted.until:
        return "it was repaired again after the time of --until"
    return repair


def _said(write: Write | AddToCounter) -> str:
    """A write as text: its effect, its cells, its write time."""
    told = {
        name: getattr(write, name)
        for name in ("cells", "column", "elements", "deltas")
        if hasattr(write, name)
    }
    rest = " ".join(f"{name} {value}" for name, value in told.items())
    return f"{type(write).__name__} {rest}".strip()
