"""A stream stood still while half a million records waited: it works them off as it does others."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

import pytest
from kafka import KafkaProducer

from tests.processes import CpuWatch, pids_of
from tests.stack.conftest import Scenes
from tests.stack.scenes import LARGEST, KeyAndValue, Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="loads")]

DELAY, WINDOW, WINDOWS = 90, 1, 10
"""Seconds of the delay and of a window; so many are read before the first has closed."""
RECORDS, A_SLICE = 500_000, 150_000
"""`kafka.max_offsets_per_batch` is the most that is looked at together."""
REMOVED, LIMIT = 150, 100
"""Messages whose row outlives them; `repair.removals_per_minute`, before the breaker opens."""
MISSING = 50
MIB_MORE = 60.0


@pytest.fixture(scope="module")
def patient(scenes: Scenes) -> Iterator[Scene]:
    """A stream with a delay in which half a million records can be read."""
    yield from scenes({"stream": {"delay": DELAY, "window": WINDOW}})


def test_windows_that_close_at_once_are_worked_off_as_ever(patient: Scene) -> None:
    removed, missing = [Place() for _ in range(REMOVED)], [Place() for _ in range(MISSING)]
    for place in removed:
        patient.write_both(place, cells())
    with CpuWatch({}, patient.stream.session) as watch:
        flood(patient, A_SLICE)
        patient.await_all_examined()
        before = watch.rss
        began = time.monotonic()
        flood(patient, RECORDS, evenly(patient, removed, missing))
        assert time.monotonic() - began > WINDOWS * WINDOW, "too few windows to close at once"
        read = partial(patient.metric, "reconciler_kafka_lag_records")
        until("all has been read", lambda: read() < A_SLICE // 100)
        stand_still(patient, DELAY)
        for place in missing:
            until("a missing row is there again", partial(patient.agrees, place))
        patient.await_all_examined()
        after = watch.rss
    assert before > 0
    assert after - before < MIB_MORE
    open_ = partial(patient.metric, "reconciler_breaker_open", breaker="removals")
    until("the breaker of removals is open", lambda: open_() == 1)
    assert sum(patient.lacks(place.row) for place in removed) <= LIMIT
    for nothing in ("query_restarts", "rows_dropped_by_watermark", "dead_letters", "losses"):
        assert patient.metric(f"reconciler_{nothing}_total") == 0, nothing


def evenly(
    scene: Scene, removed: Sequence[Place], missing: Sequence[Place]
) -> list[Callable[[], None]]:
    """Truth rows that are deleted, and between them, from first to last, those that are written."""
    share = len(removed) // len(missing)
    return [
        partial(scene.write_truth, missing[number // (share + 1)], cells())
        if number % (share + 1) == share
        else partial(scene.delete_truth, removed[number - number // (share + 1)])
        for number in range(len(removed) + len(missing))
    ]


def flood(scene: Scene, records: int, work: Sequence[Callable[[], None]] = ()) -> None:
    """Events of messages that are gone by now; among them, evenly, what is done meanwhile."""
    producer = KafkaProducer(
        bootstrap_servers=scene.stack.bootstrap_servers,
        linger_ms=50,
        batch_size=262_144,
        max_request_size=LARGEST,
    )
    with closing(producer):
        done = 0
        for number in range(records):
            key, value = _event_of(scene.keyspace)
            producer.send(scene.stack.topic_prefix, key=key, value=value)
            while done < len(work) * (number + 1) // records:
                work[done]()
                done += 1
        producer.flush()


def _event_of(keyspace: str) -> KeyAndValue:
    """A change of a truth row that is nowhere."""
    place, now = Place(), now_us()
    source = {"ts_us": now, "keyspace": keyspace, "table": "imapuidtable"}
    value = {"ts_ms": now // 1000, "op": "u", "source": source, "after": {}}
    return place.event_key, json.dumps(value).encode()


def stand_still(scene: Scene, seconds: float) -> None:
    """All processes of the stream stop in their tracks for so long."""
    session = scene.stream.session
    since = time.monotonic()
    for pid in pids_of(session):
        os.kill(pid, signal.SIGSTOP)
    try:
        until("it stood still", lambda: time.monotonic() - since > seconds)
    finally:
        for pid in pids_of(session):
            os.kill(pid, signal.SIGCONT)
