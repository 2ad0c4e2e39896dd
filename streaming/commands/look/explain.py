"""``reconcile explain``: shows why a message, a mailbox or a user's mail is as it is.

It only reads, applies the stream's own rules (`streaming.steps.explain`), and needs no stream.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from checkpoints.bookmarks import Bookmark, Bookmarks
from checkpoints.cassandra import CassandraBookmarks
from checkpoints.codec import Json
from reconcilers.declared.family import Family, bind
from reconcilers.rows.finding import State
from reconcilers.words.errors import Misconfigured, ReadFailed, Refused
from reconcilers.words.key import named, text_of
from reconcilers.words.model import KeyValue, Slot
from streaming.commands.arguments.finding_filter import add_system, slots_named
from streaming.commands.arguments.output import TABLE, add_object_format, formatted
from streaming.commands.arguments.stored_times import with_iso_times
from streaming.commands.arguments.times import positive
from streaming.commands.look.explain_counters import CounterExplainer, counter_explainer
from streaming.commands.look.places_shown import Surroundings, iso, place_json, place_lines
from streaming.commands.wiring import workers
from streaming.commands.wiring.stream_names import StreamNames
from streaming.commands.wiring.unsettled_events import UnsettledEvents
from streaming.pipeline.worker import Job
from streaming.settings import Mode, Settings
from streaming.steps.explain import Explainer
from streaming.steps.ports import GroupTables
from streaming.tables import ContentTables, connect, schema_of
from streaming.tables.own_keyspace import OwnStores, open_own
from streaming.topics import Watcher

MOST_PLACES = 50
"""Of a message, told one by one."""
HISTORY_DAYS = 2
TIME_BASED = 1
"""The version of the UUIDs of messages and mailboxes; Cassandra refuses to look for another."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile explain MESSAGEID | MAILBOXID [UID] | USER | KEY``."""
    told = "or the key of a right or an attachment, as findings show it"
    parser.add_argument("what", metavar="MESSAGEID|MAILBOXID|USER|KEY", help=told)
    parser.add_argument("uid", nargs="?", type=int, metavar="UID", help="in that mailbox")
    add_system(parser)
    add_object_format(parser)
    parser.add_argument(
        "--days", type=positive, default=HISTORY_DAYS, metavar="N", help="of history (2)"
    )
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Explain; returns 0. Raises `Misconfigured` if there is no such message, mailbox or user."""
    number = _uuid(arguments.what)
    if number is None and arguments.uid is not None:
        raise Misconfigured(f"{arguments.what!r} is no mailbox id (a UUID), so it has no UIDs")
    told = _told(settings, arguments, number)
    form = arguments.format
    print(
        "\n".join(
            told.lines if form == TABLE else formatted(form, map(with_iso_times, told.objects))
        )
    )
    return 0


def _uuid(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None


def _told(settings: Settings, arguments: argparse.Namespace, number: UUID | None) -> Explained:
    messages, *others = settings.families()
    system = arguments.projection
    meant = (each for each in others if system is None or system in each.names)
    named = slots_named((each for each in meant if each.projections), arguments.what)
    places = [] if arguments.uid is not None else list(named)
    if number is not None and (not places or number.version == TIME_BASED):
        try:
            return _desk(settings, messages).explained(number, arguments.uid, arguments.days)
        except Misconfigured:
            if not places:
                raise
    if not places:
        return _desk(settings, messages).of_user(arguments.what)
    told = [_desk(settings, family).place(slot, arguments.days) for family, slot in places]
    return Explained(
        [line for each in told for line in each.lines],
        [each for one in told for each in one.objects],
    )


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer, as lines and as JSON objects; each is made when it is asked for."""

    lines: Iterable[str]
    objects: Iterable[Json]


def _desk(settings: Settings, declared: Family) -> ExplainDesk:
    own = open_own(settings)
    schema = schema_of(connect(settings.cassandra), settings.cassandra.keyspace)
    family = bind(declared, schema)
    names = StreamNames.of(settings, Mode.REPAIR)
    job = workers.job(settings, family, names.suspects_topic)
    examiners = tuple(workers.examiner(job, each) for each in family.projections)
    explainer = Explainer(family, job.connections().lineage, examiners)
    newest = partial(_newest, settings, family, CassandraBookmarks(own.store))
    watcher, topics = partial(Watcher, settings.kafka), (settings.kafka.topic_prefix,)
    unsettled = UnsettledEvents(watcher, topics, newest)
    counters = counter_explainer(settings, bind(settings.families()[0], schema), own, schema)
    return ExplainDesk(job, own, explainer, counters, unsettled)


def _newest(settings: Settings, family: Family, bookmarks: Bookmarks) -> Bookmark | None:
    """The bookmark that a stream of either mode has stored last."""
    names = (StreamNames.of(settings, mode).bookmarks(family) for mode in Mode)
    found = [each for each in map(bookmarks.newest, names) if each is not None]
    return max(found, key=lambda each: each.recorded_at, default=None)


@dataclass(frozen=True, slots=True)
class ExplainDesk:
    """Finds out what the arguments mean, and reads all of it."""

    job: Job
    own: OwnStores
    explainer: Explainer
    counters: CounterExplainer
    unsettled: UnsettledEvents

    def explained(self, number: UUID, uid: int | None, days: int) -> Explained:
        """Explain a message, a place or a mailbox. Raises `Misconfigured` if it is none."""
        if uid is not None:
            return self.place(Slot(number, uid), days)
        places = self.explainer.places_of(number)
        if places or self._content(number) == KEPT:
            return self._message(number, places, days)
        if self._is_mailbox(number):
            return self._mailbox(number)
        raise Misconfigured(
            f"{number}: neither truth, lineage nor content has such a message, and no mailbox is"
            " named so (MESSAGEID, MAILBOXID, or MAILBOXID UID)"
        )

    def place(self, slot: Slot, days: int) -> Explained:
        """Explain a place by its key alone."""
        return self._places([(slot, ())], days)

    @property
    def family(self) -> Family:
        """The family that is explained."""
        return self.explainer.family

    # --- a message, a place

    def _message(self, message: UUID, places: tuple[Slot, ...], days: int) -> Explained:
        found = self._places([(slot, (message,)) for slot in places[:MOST_PLACES]], days)
        head = [f"{self.family.truth.source.label} {message}: {len(places)} places"]
        if not places:
            head += [f"  content: {self._content(message)}", "  no place has it, or ever had it"]
        if len(places) > MOST_PLACES:
            head.append(f"  the first {MOST_PLACES} are shown; name MAILBOXID UID for another")
        return Explained([*head, *found.lines], found.objects)

    def _places(self, asked: Iterable[tuple[Slot, tuple[KeyValue, ...]]], days: int) -> Explained:
        lines, objects = list[str](), list[Json]()
        for slot, sources in asked:
            place = self.explainer.place(slot, sources)
            consulted = {each for one in place.projections for each in one.case.seen.consulted}
            around = self._around(consulted)
            history = list(self._history(slot, days))
            events = list(self.unsettled.of(slot, consulted))
            lines += place_lines(self.family, place, around)
            lines += [f"  not settled yet: {each}" for each in events]
            lines += [f"  history: {iso(_at(each))} {_event(each)}" for each in history]
            told = {"history": history, "unsettled": events}
            objects.append(place_json(self.family, place, around) | told)
        return Explained(lines, objects)

    def _around(self, sources: Iterable[KeyValue]) -> Surroundings:
        watching = self.job.connections().lineage.watching()
        content = {str(each): self._content(each) for each in sorted(sources, key=str)}
        return Surroundings(
            tuple(self._hindrances()),
            content,
            None if watching is None else watching.since,
            None if watching is None else watching.swept_at,
        )

    def _hindrances(self) -> Iterator[str]:
        for name, why in self.own.journal.breakers().items():
            yield f"breaker {name.value} is open: {why}; `reconcile resume --breaker {name.value}`"
        for each in self.job.connections().pauses.asked_anew():
            yield f"{each.told}; `{each.command}`"

    def _content(self, source: KeyValue) -> str:
        settings = self.job.settings.cassandra
        tables = ContentTables(connect(settings), settings, self.family.truth)
        try:
            return KEPT if tables.having_content([source]) else "gone"
        except (Refused, ReadFailed) as why:
            return f"not known: {why}"

    def _history(self, slot: Slot, days: int) -> Iterator[Json]:
        key = named(self.family.key, slot.key).items()
        today = datetime.now(UTC).date()
        for back in reversed(range(days)):
            for line in self.own.journal.log(today - timedelta(days=back)):
                if all(line.get(name) == value for name, value in key):
                    yield line

    # --- a mailbox, a user

    def _is_mailbox(self, mailbox: UUID) -> bool:
        if self.counters.owner(mailbox) is not None:
            return True
        tables: GroupTables = self.explainer.examiners[0].tables
        return next(iter(tables.slots_of_group(self.family.listing, mailbox)), None) is not None

    def _mailbox(self, mailbox: UUID) -> Explained:
        told = self.counters.mailbox(mailbox)
        found = [
            each
            for each in self.own.journal.open_findings(self.family)
            if each.slot.group == mailbox
        ]
        lines = [*told.lines, f"  {len(found)} open findings of its messages"]
        lines += [
            f"    {text_of(each.slot)} {each.kind} {each.state}: {each.told}"
            for each in found[:MOST_PLACES]
        ]
        states = {str(state): sum(each.state is state for each in found) for state in State}
        open_now = {name: number for name, number in states.items() if number}
        return Explained(lines, [told.object | {"open_findings": open_now}])

    def of_user(self, user: str) -> Explained:
        """Explain a user's mailboxes and quota. Raises `Misconfigured` if they have none."""
        mailboxes = self.counters.mailboxes(user)
        if not mailboxes:
            raise Misconfigured(f"no mailbox is named as one of user {user!r}")
        found = list(map(self._mailbox, mailboxes))
        quota = self.counters.quota(user)
        lines = [line for each in found for line in each.lines]
        objects = [each for one in found for each in one.objects]
        head = f"user {user}: {len(mailboxes)} mailboxes"
        return Explained([head, *quota.lines, *lines], [quota.object, *objects])


KEPT = "there"


def _at(line: Json) -> int:
    return int(str(line["at"]))


def _event(line: Json) -> str:
    return f"{line['projection']}: {line['kind']} {line['state']}: {line['sentence']}"
