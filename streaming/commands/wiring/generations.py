"""The generation of our own keyspace in the commands: what stands outside it, and the way out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from functools import partial

from checkpoints.cassandra import CassandraGenerations, CassandraLineage, Store
from checkpoints.clock import now_micros
from checkpoints.pauses import Resumed
from reconcilers.limits.generation import doubt, next_of, noted
from reconcilers.limits.pause import NO_PILOT, Pause, in_doubt, without_pilot
from reconcilers.words.errors import Overloaded
from reconcilers.words.model import Micros
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.stream_names import StreamNames
from streaming.pipeline.growing import GrowingKeyspace
from streaming.settings import Mode, Settings
from streaming.steps.own_keyspace import OwnKeyspace
from streaming.tables.own_keyspace import OwnStores, end_memory
from streaming.topics import Watcher


def outside(settings: Settings, watcher: Watcher) -> Micros | None:
    """The newest generation that a stream of this installation, in either mode, left in Kafka.

    None where none did, or Kafka has forgotten it (`offsets.retention.minutes`, seven days unless
    set). Raises `Unreachable`.
    """
    groups = (StreamNames.of(settings, mode).group for mode in Mode)
    found = (noted(note) for group in groups for note in watcher.notes(group))
    return max((each for each in found if each is not None), default=None)


def begin_generation(opened: OpenedStream) -> None:
    """A stream starts: what stands outside is compared with the keyspace from now on.

    Raises `Retryable`, `Refused`.
    """
    keyspace = opened.job.connections().pauses.keyspace
    if keyspace is not None:
        keyspace.begin(outside(opened.settings, opened.watcher), now_micros())


def growing(opened: OpenedStream) -> GrowingKeyspace:
    """Commits what this stream has settled, and raises the generation."""
    keyspace = opened.job.connections().pauses.keyspace
    assert keyspace is not None
    return GrowingKeyspace(keyspace, partial(opened.watcher.commit, opened.names.group), now_micros)


def compared(settings: Settings, store: Store) -> OwnKeyspace:
    """Our keyspace for a command that writes, beside what stands in Kafka. Raises `Unreachable`."""
    with closing(Watcher(settings.kafka)) as watcher:
        newest = outside(settings, watcher)
    return OwnKeyspace(CassandraGenerations(store, settings.cassandra.keyspace), newest)


def doubt_of(settings: Settings, store: Store, watcher: Watcher | None) -> str | None:
    """Why our keyspace is not as it was left; without Kafka only what its tables show."""
    newest = None if watcher is None else outside(settings, watcher)
    return doubt(CassandraGenerations(store, settings.cassandra.keyspace).read(), newest)


def held_by_itself(
    settings: Settings, doubt: str | None, standing: Collection[Pause]
) -> Iterator[str]:
    """What holds repairs back though no person has paused them, each with the command for it."""
    if doubt is not None:
        yield f"{in_doubt(doubt).told}; `reconcile resume --own-keyspace`"
    if settings.repair.only_pilot and NO_PILOT in without_pilot(standing, now_micros()):
        yield f"{NO_PILOT.told}; `reconcile pilot --user NAME`"


def accept(settings: Settings, own: OwnStores, by: Resumed) -> Iterator[str]:
    """A person says that our keyspace is right as it is; what was done, in lines.

    Memory from before the newest generation that is known ends: it may lack what was kept since.
    Raises `Unreachable`, `Overloaded` where it changed meanwhile.
    """
    store = CassandraGenerations(own.store, settings.cassandra.keyspace)
    with closing(Watcher(settings.kafka)) as watcher:
        newest = outside(settings, watcher)
    found = store.read()
    why = doubt(found, newest)
    yield f"our keyspace was not as it was left: {why}" if why else "our keyspace is as it was left"
    lasts = max((each for each in (newest, *found.values()) if each is not None), default=0)
    watching = CassandraLineage(own.store).watching()
    if why is not None and (watching is None or watching.since <= lasts):
        told = f"our keyspace was lost or restored ({why}), taken as right by {by.who}: {by.reason}"
        end_memory(own.store, told)
        yield "memory begins anew; a sweep makes it whole"
    if not store.replace(found, next_of(found, newest, by.at)):
        raise Overloaded("our keyspace has changed meanwhile: nothing is accepted, ask again")
    yield "it is taken as right from now on; a stream that waited for that goes on"
