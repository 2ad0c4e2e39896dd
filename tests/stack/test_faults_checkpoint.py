"""Spark's files are disposable: a stream begins after what is settled, whatever is left of them.

Each stream is killed while it holds records that it has read and not looked at: Spark's files alone
know of them. And only one live stream repairs.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from checkpoints.cassandra import CassandraLease, Store
from checkpoints.lease import Holder
from deploy.mailserver.mail import Message
from reconcilers.words.exit_codes import ExitCode
from tests.stack.scenes import events_of
from tests.stack.streams import Stream, until
from tests.stack.users import PROJECTION, TRUTH
from tests.stack.watched import SLOW, Restarted, Watched

pytestmark = pytest.mark.stack

HOLDS_KEYS_FOR = 30
"""D here: time enough to kill the stream between reading a record and looking at it."""
GARBAGE = b"v1\nnot what Spark wrote\n"


@pytest.fixture
def restarted(place: Watched, tmp_path: Path) -> Iterator[Restarted]:
    made = place.stream(tmp_path, {"stream": {"delay": HOLDS_KEYS_FOR}})
    yield made
    made.forget()


# --- damages --------------------------------------------------------------------------------------


def untouched(_checkpoint: Path) -> None:
    """A process died, nothing else."""


def deleted(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def garbage(checkpoint: Path) -> None:
    for file in checkpoint.rglob("*"):
        if file.is_file():
            file.write_bytes(GARBAGE)


Damage = Callable[[Path], None]


# --- what a stream goes through -------------------------------------------------------------------


def die_holding(restarted: Restarted, planted: list[Message]) -> None:
    """Kill the stream when it has read the events of these messages, and examined none."""
    stream, place = restarted.stream, restarted.place
    names = [str(message.mailboxid).encode() for message in planted]

    def ends() -> dict[tuple[str, int], int]:
        """The offsets after the last event, once every message has one."""
        records = events_of(place.stack, place.keyspace, TRUTH, PROJECTION)
        heard = [name for name in names if any(name in (each.key or b"") for each in records)]
        after = {}
        for each in records if len(heard) == len(names) else ():
            after[each.topic, each.partition] = each.offset + 1
        return after

    events = until("the events are in Kafka", ends, SLOW)

    def has_read() -> bool:
        read = stream.read_up_to()
        return all(
            read.get(topic, {}).get(str(partition), 0) >= after
            for (topic, partition), after in events.items()
        )

    until("a batch that read them has ended", has_read, SLOW)
    stream.kill()


@pytest.mark.long(part="checkpoints")
def test_whatever_becomes_of_sparks_files_nothing_that_they_held_is_lost(
    restarted: Restarted,
) -> None:
    stream = restarted.stream
    stream.start()
    for damage in (untouched, deleted, garbage):
        planted = restarted.plant()
        die_holding(restarted, planted)
        held = [message for message in planted if not restarted.histories()[message]]
        assert held, "all was examined before the stream died: nothing is proved"
        damage(stream.checkpoint)
        stream.start()
    restarted.await_convergence()
    restarted.each_was_repaired_once()
    assert stream.stop() == 0


# --- one live stream ------------------------------------------------------------------------------


def beside(restarted: Restarted, folder: Path) -> Stream:
    """A second stream of the same installation, with a checkpoint of its own."""
    folder.mkdir()
    first = restarted.stream.config.read_text(encoding="utf-8")
    config = folder / "reconcile.toml"
    checkpoint = str(restarted.stream.checkpoint.parent)
    config.write_text(first.replace(checkpoint, str(folder / "checkpoint")), encoding="utf-8")
    return replace(restarted.stream, config=config)


@pytest.mark.long(part="checkpoints")
def test_a_second_stream_is_refused_in_one_line_and_takes_over_from_the_dead(
    restarted: Restarted, tmp_path: Path
) -> None:
    first, second = restarted.stream, beside(restarted, tmp_path / "second")
    first.start()
    until("the first one holds the lease", lambda: first.said("watching"), SLOW)
    refused(second)
    first.kill()
    try:
        second.start()
        until("the second one takes over", lambda: second.said("watching"), SLOW)
        assert second.said("taking over from process")
    finally:
        second.kill()


@pytest.mark.long(part="checkpoints")
def test_a_stream_that_stands_by_takes_over_from_one_that_is_killed(
    restarted: Restarted, tmp_path: Path
) -> None:
    first = restarted.stream
    second = replace(beside(restarted, tmp_path / "second"), arguments=("--standby",))
    first.start()
    until("the first one holds the lease", lambda: first.said("watching"), SLOW)
    second.start()
    try:
        until("the second one stands by", lambda: second.said("it stands by"), SLOW)
        assert not second.said("watching")
        first.kill()
        until("the second one takes over", lambda: second.said("watching"), SLOW)
    finally:
        second.kill()


def test_a_lease_of_another_host_is_waited_for(restarted: Restarted, tmp_path: Path) -> None:
    """Whether its holder lives cannot be seen from here: only time tells."""
    leases = CassandraLease(Store(restarted.place.session, restarted.own))
    name = f"{restarted.place.keyspace}/repair"

    def renew() -> None:
        leases.take(name, Holder("another", "elsewhere:1"), timedelta(seconds=10))

    renew()
    assert "elsewhere:1" in refused(restarted.stream, renew)
    until("the lease has ended", lambda: leases.held_by(name) is None)
    restarted.stream.start()
    until("the stream takes the lease", lambda: restarted.stream.said("watching"), SLOW)


def refused(stream: Stream, meanwhile: Callable[[], object] = bool) -> str:
    """The one line with which it ends; what happens again and again until then."""
    stream.start()

    def ended() -> bool:
        meanwhile()
        return stream.died() is not None

    until("it ends", ended, SLOW)
    assert stream.died() == ExitCode.REFUSED
    stream.kill()
    line = stream.log.read_text(encoding="utf-8").strip().splitlines()[-1]
    assert line.startswith("reconcile: another live stream holds the lease")
    return line
