"""Compares the generation of our own keyspace with the one stored in Kafka."""

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
from streaming.pipeline.growing_keyspace import GrowingKeyspace
from streaming.settings import Mode, Settings
from streaming.steps.own_keyspace import OwnKeyspace
from streaming.tables.own_keyspace import OwnStores, end_memory
from streaming.topics import Watcher


def outside(settings: Settings, watcher: Watcher) -> Micros | None:
    """The newest generation (µs) that a stream of this installation stored in Kafka, in any mode.

    None if none did, or if Kafka has expired it (`offsets.retention.minutes`, seven days by
    default). Raises `Unreachable`.
    """
    groups = (StreamNames.of(settings, mode).group for mode in Mode)
    found = (noted(note) for group in groups for note in watcher.notes(group))
    return max((each for each in found if each is not None), default=None)


def begin_generation(opened: OpenedStream) -> None:
    """Compare the keyspace with Kafka's generation from now on. Raises `Retryable`, `Refused`."""
    keyspace = opened.job.connections().pauses.keyspace
    if keyspace is not None:
        keyspace.begin(outside(opened.settings, opened.watcher), now_micros())


def growing(opened: OpenedStream) -> GrowingKeyspace:
    """Commits the offsets that this stream has settled and raises the generation."""
    keyspace = opened.job.connections().pauses.keyspace
    assert keyspace is not None
    return GrowingKeyspace(keyspace, partial(opened.watcher.commit, opened.names.group), now_micros)


def compared(settings: Settings, store: Store) -> OwnKeyspace:
    """Our keyspace for a command that writes, compared with Kafka. Raises `Unreachable`."""
    with closing(Watcher(settings.kafka)) as watcher:
        newest = outside(settings, watcher)
    return OwnKeyspace(CassandraGenerations(store, settings.cassandra.keyspace), newest)


def doubt_of(settings: Settings, store: Store, watcher: Watcher | None) -> str | None:
    """Why our keyspace is not as it was left, or None.

    Without Kafka only our tables are compared.
    """
    newest = None if watcher is None else outside(settings, watcher)
    return doubt(CassandraGenerations(store, settings.cassandra.keyspace).read(), newest)


def held_by_itself(
    settings: Settings, doubt: str | None, standing: Collection[Pause]
) -> Iterator[str]:
    """The pauses that no person has asked for, each with the command that ends it."""
    held = [] if doubt is None else [in_doubt(doubt)]
    if settings.repair.only_pilot and NO_PILOT in without_pilot(standing, now_micros()):
        held.append(NO_PILOT)
    yield from (f"{each.told}; `{each.command}`" for each in held)


def accept(settings: Settings, own: OwnStores, by: Resumed) -> Iterator[str]:
    """Accept our keyspace as it is; yields what was done, line by line.

    Lineage from before the newest known generation ends, since entries of that time may be missing.
    Raises `Unreachable`, and `Overloaded` if the keyspace changed meanwhile.
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
        told = f"our keyspace was lost or restored ({why}), accepted by {by.who}: {by.reason}"
        end_memory(own.store, told)
        yield "lineage is reset; a sweep makes it complete"
    if not store.replace(found, next_of(found, newest, by.at)):
        raise Overloaded("our keyspace has changed meanwhile: nothing is accepted, ask again")
    yield "it is accepted from now on; a stream that waited for that continues"
