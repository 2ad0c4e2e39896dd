"""What the stream of messages does for its process, and the streams of other families do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from checkpoints.losses import Cause, Loss
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.declared.family import Family
from streaming.canary.no_memory import NoMemoryWatch
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.metrics import Metrics
from streaming.settings import Mode, Settings, StreamSettings

ANY: Any = None
NAMES = StreamNames.of(Settings(), Mode.REPAIR)


def job_of(family: Family) -> Any:
    return SimpleNamespace(family=family, settings=Settings())


def test_only_the_stream_of_messages_shows_what_a_process_has_once() -> None:
    metrics, mine, other = Metrics(CollectorRegistry()), object(), object()
    messages = OpenedStream(job_of(MESSAGE), NAMES, ANY, mine, (), None, metrics)  # type: ignore[arg-type]
    rights = messages.beside(job_of(RIGHTS), other)  # type: ignore[arg-type]
    assert (messages.leads, rights.leads) == (True, False)
    assert messages.once is metrics
    assert rights.once is not metrics
    assert rights.metrics is metrics
    assert (messages.watcher, rights.watcher) == (mine, other), "no client is shared by threads"


def test_each_family_has_bookmarks_of_its_own() -> None:
    assert NAMES.bookmarks(MESSAGE) != NAMES.bookmarks(RIGHTS)


def test_tables_that_seldom_change_get_fewer_batches() -> None:
    usual = StreamSettings(delay=45, window=5, trigger=1).seldom
    assert (usual.delay, usual.window, usual.trigger) == (45, 25, None)
    assert StreamSettings(delay=3, window=1).seldom.window == 3, "no window is longer than D"


class Losses:
    """Those that were recorded."""

    def __init__(self) -> None:
        self.recorded: list[Loss] = []

    def record(self, loss: Loss) -> None:
        self.recorded.append(loss)

    def since(self, at: int) -> tuple[Loss, ...]:
        raise AssertionError(at)


def test_without_lineage_only_the_loss_of_unread_records_is_recorded() -> None:
    losses = Losses()
    watch = NoMemoryWatch(losses, lambda: 7)
    watch.check()
    watch.lost(5, "canaries have not come")
    watch.doubted("our keyspace was restored", None)
    assert losses.recorded == []
    watch.lost_until_now("Kafka no longer holds them")
    assert losses.recorded == [Loss(7, "Kafka no longer holds them", Cause.RETENTION)]
