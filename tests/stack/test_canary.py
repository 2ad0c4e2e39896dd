"""Canaries on real servers: a silent agent is seen and waited for, lost segments are known.

One stack and one stream of this file's own.
"""

import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.embedded import Stack
from deploy.embedded.wait import HANG_S
from streaming.tables import canary_schema
from tests.endpoints import Running
from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import Counted
from tests.stack.scenes import KeyAndValue, Place, Scene, cells
from tests.stack.streams import until, write_settings

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

SILENT, USUAL = 30.0, 15.0
"""Seconds: an agent that is away, and one that keeps up on a busy machine."""
LOST_AFTER = 5.0
SPAN = re.compile(r"node [0-9a-f-]+, \S+/\d+: \d+ s whose canaries have not come")
SEGMENTS = 4
"""So many commit log segments are filled while no agent reads them."""


@pytest.fixture(scope="module")
def live(own_scenes: Scenes) -> Iterator[Scene]:
    changes = {
        "stream": {"delay": LATEST},
        "tally": TALLIES,
        "canary": {"lost_after": LOST_AFTER, "usual_delay": SILENT},
    }
    for made in own_scenes(changes):
        until("canaries come back", partial(made.metric, "reconciler_frontier_timestamp_seconds"))
        yield made


def _delay(scene: Scene) -> float | None:
    """The age of the node's newest canary."""
    return scene.metric("reconciler_capture_delay_seconds") or None


def _judged(scene: Scene) -> float:
    return sum(
        scene.metric("reconciler_tally_looks_total", outcome=each)
        for each in ("agrees", "wrong", "unsure")
    )


def test_a_silent_agent_is_seen_and_counters_wait_for_it(live: Scene, own_stack: Stack) -> None:
    until("the agent keeps up", lambda: (_delay(live) or SILENT) < USUAL)
    box = Counted(live).create().hold(seen=2, unseen=1)
    box.add(2, 1)
    until("its counter was found wrong", lambda: _judged(live) > 0)
    own_stack.pause_agent()
    until("its silence is seen", lambda: (_delay(live) or 0) > SILENT)
    judged = _judged(live)
    place = Place()
    live.write_truth(place, cells())
    until("its silence lasts", lambda: (_delay(live) or 0) > 2 * SILENT)
    assert _judged(live) == judged
    assert box.counters() == (2, 1)
    own_stack.resume_agent()
    until("the agent keeps up again", lambda: (_delay(live) or SILENT) < USUAL)
    until("what was written meanwhile is repaired", lambda: live.agrees(place))
    until("the counter is exact", lambda: box.counters() == (3, 1))
    assert live.metric("reconciler_losses_total") == 0


def test_while_an_agent_is_silent_a_removal_on_memory_waits(live: Scene, own_stack: Stack) -> None:
    until("the agent keeps up", lambda: (_delay(live) or SILENT) < USUAL)
    healthy = Place()
    orphan = replace(healthy, uid=2)  # the truth never has it, and its message is known
    live.write_both(healthy, cells())
    events = until("its events have come", partial(_listed, live, healthy))
    own_stack.pause_agent()
    until("the stream is behind", partial(_waits, live))
    live.write_projection(orphan, {"messageid": orphan.messageid, **cells()})
    live.publish(_at_uid(events, 2))  # as another node's agent would
    waits = until("its removal waits", lambda: live.findings(orphan.row))[-1]
    assert (waits["kind"], waits["state"]) == ("extra_row", "held")
    assert "held: the stream is behind: node" in waits["message"]
    assert _waits(live)
    told = live.command("findings", "--state", "held").stdout
    assert str(orphan.mailboxid) in told
    assert "the stream is behind" in told
    assert not live.lacks(orphan.row)
    own_stack.resume_agent()
    live.await_verified(orphan.row)
    assert live.lacks(orphan.row)
    until("the stream is not behind any more", lambda: not _waits(live))


def _waits(scene: Scene) -> bool:
    """Whether operators see that removals wait."""
    return scene.metric("reconciler_repairs_paused", reason="behind") == 1


def _listed(scene: Scene, place: Place) -> list[KeyAndValue]:
    """The events of its row of the listing, so far."""
    found = scene.events([place.mailboxid])
    return [(key, value) for key, value in found if b'"table":"messageidtable"' in (value or b"")]


def _at_uid(events: list[KeyAndValue], uid: int) -> list[KeyAndValue]:
    """The same events of the row with another UID."""

    def named(text: bytes | None) -> bytes:
        return re.sub(rb'("uid":(?:\{"value":)?)1\b', rb"\g<1>%d" % uid, text or b"")

    return [(named(key), named(value)) for key, value in events]


def test_segments_that_are_lost_are_known_to_be_lost(
    live: Scene, own_stack: Stack, own_session: Session
) -> None:
    before = json.loads(live.command("status", "--format", "json").stdout)["watched_since"]
    own_stack.kill_agent()
    raw = own_stack.layout.cassandra / "cdc_raw"
    filled = _segments(raw)
    until("segments fill", lambda: len(_fill(own_session, live, raw) - filled) > SEGMENTS)
    own_stack.stop_cassandra()  # it still writes to what it has open
    for each in raw.iterdir():
        each.unlink()
    own_stack.start_cassandra()
    own_stack.start_agent()
    until("the loss is known", lambda: live.metric("reconciler_losses_total") > 0)
    assert live.stream.said("events may be lost: node")
    told = json.loads(live.command("status", "--format", "json").stdout)["losses"]
    assert any(SPAN.search(each) for each in told), told
    until(
        "memory has begun anew",
        lambda: (
            json.loads(live.command("status", "--format", "json").stdout)["watched_since"] > before
        ),
    )
    place = Place()
    live.write_truth(place, cells())
    until("the stream goes on", lambda: live.agrees(place))


def _segments(raw: Path) -> set[str]:
    return {each.stem for each in raw.glob("CommitLog-*.log")}


def _fill(session: Session, scene: Scene, raw: Path) -> set[str]:
    """Some mail; the segments that are there then."""
    for _ in range(200):
        scene.write_both(Place(), cells(headercontent="x" * 2_000))
    return _segments(raw)


def test_a_process_of_its_own_writes_canaries_too(
    own_running: Running, own_session: Session, tmp_path: Path
) -> None:
    own = f"canary_{uuid.uuid4().hex[:8]}"
    table = f"{own}_written"
    canary_schema.create(own_session, table)  # where no stream writes
    config = write_settings(
        tmp_path / "reconcile.toml",
        own_running.endpoints,
        own_running.endpoints.keyspace,
        own,
        {"canary": {"keyspace": table}},
    )
    command = [sys.executable, "-m", "streaming.app", "canary", "--config", str(config)]
    with subprocess.Popen(command) as process:
        try:
            until("it writes", lambda: _newest(own_session, table) is not None)
            first = _newest(own_session, table) or 0
            until("numbers go up", lambda: (_newest(own_session, table) or 0) > first + 3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 0
        finally:
            process.kill()
    for each in (own, table):
        own_session.execute(f"DROP KEYSPACE IF EXISTS {each}")


def _newest(session: Session, keyspace: str) -> int | None:
    """The number of the newest canary of all."""
    newest: int | None = (
        session.execute(f"SELECT max(number) AS newest FROM {keyspace}.canary").one().newest
    )
    return newest
