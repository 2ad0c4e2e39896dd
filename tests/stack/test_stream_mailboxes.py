"""The stream reports conflicts of mailbox objects after the delay, and writes neither table."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from checkpoints.clock import now_micros
from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.declared.unheard import SETTLED, TableHeard
from reconcilers.words.exit_codes import ExitCode
from reconcilers.words.model import SECOND
from streaming.monitoring.unheard import UnheardTables
from streaming.settings import load
from streaming.tables import logged_in
from streaming.topics import Watcher
from tests.stack.boxes import NAMESPACE, USER, Boxes, Tables
from tests.stack.conftest import Scenes
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = pytest.mark.stack

CONFLICTS = {
    "orphan": "extra_row",
    "missing": "missing_row",
    "after": "extra_row",
    "before": "missing_row",
    "wanted": "differing_cells",
    "f's": "differing_cells",
    "g's": "differing_cells",
    "shared": "duplicate_uid",
}
"""The paths of `plant`, with what is wrong there."""


@pytest.fixture(scope="module")
def scene(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes({"mailboxes": {"watch": True}, "stream": {"delay": 8}})


def plant(boxes: Boxes) -> None:
    """One conflict of each kind, and a right mailbox."""
    boxes.path("INBOX", "a")
    boxes.mailbox("a", "INBOX")
    boxes.path("orphan", "b")
    boxes.mailbox("c", "missing")
    boxes.mailbox("d", "before")
    boxes.path("after", "d")
    boxes.mailbox("f", "g's")
    boxes.path("f's", "f")
    boxes.mailbox("g", "f's")
    boxes.path("g's", "g")
    boxes.path("wanted", "i")
    boxes.mailbox("h", "wanted")
    boxes.path("shared", "j")
    boxes.mailbox("j", "shared")
    boxes.mailbox("k", "shared")


def mend(boxes: Boxes) -> None:
    """What an operator might do about each."""
    boxes.mailbox("b", "orphan")
    boxes.path("missing", "c")
    boxes.mailbox("d", "after")
    boxes.mailbox("f", "f's")
    boxes.mailbox("g", "g's")
    boxes.mailbox("h", "elsewhere")
    boxes.path("elsewhere", "h")
    boxes.mailbox("i", "wanted")
    boxes.no_mailbox("k")


@pytest.fixture(scope="module")
def boxes(scene: Scene) -> Boxes:
    return Boxes(scene.session, scene.keyspace)


@pytest.fixture(scope="module")
def planted(boxes: Boxes) -> Tables:
    plant(boxes)
    return boxes.tables()


def told(scene: Scene, name: str, **facts: Any) -> list[dict[str, Any]]:
    return scene.stream.findings(
        username=USER, namespace=NAMESPACE, mailboxname=name, projection="mailbox_paths", **facts
    )


def open_now(scene: Scene) -> dict[str, str]:
    """The open findings: their kinds by path. Each is held, for its command."""
    found = list(scene.journal.open_findings(MAILBOX))
    assert {(str(each.state), str(each.wait)) for each in found} <= {("held", "command")}
    return {str(each.slot.key[-1]): str(each.kind) for each in found}


def test_a_rename_that_is_under_way_at_a_look_is_not_reported(scene: Scene, boxes: Boxes) -> None:
    boxes.path("old", "l")
    boxes.mailbox("l", "old")
    boxes.path("new", "l")
    under_way = "one may be in flight"
    before = len(scene.stream.said(under_way))
    until("a look has met it", lambda: len(scene.stream.said(under_way)) > before)
    boxes.no_path("old")
    boxes.mailbox("l", "new")
    boxes.path("later", "m")
    until("a later conflict is reported", lambda: open_now(scene).get("later"))
    assert told(scene, "new") == told(scene, "old") == []
    boxes.mailbox("m", "later")


def test_each_conflict_is_reported_and_neither_table_is_written(
    scene: Scene, boxes: Boxes, planted: Tables
) -> None:
    until("all are reported", lambda: open_now(scene).keys() >= CONFLICTS.keys())
    until("each by its kind", lambda: open_now(scene) == CONFLICTS)
    assert boxes.tables() == planted
    assert scene.metric("reconciler_keys_examined_total", family="mailbox") >= len(CONFLICTS)
    held = scene.metric(
        "reconciler_open_findings", projection="mailbox_paths", kind="duplicate_uid", state="held"
    )
    assert held == 1


def test_both_sides_are_explained_with_the_command_that_repairs(
    scene: Scene, boxes: Boxes, planted: Tables
) -> None:
    until("it is reported", lambda: open_now(scene).get("wanted"))
    explained = scene.succeed("explain", f"{USER}/{NAMESPACE}/wanted").stdout
    assert str(boxes.ids["h"]) in explained
    assert str(boxes.ids["i"]) in explained
    assert "only `reconcile mailboxes` repairs it" in explained
    assert "in repair mode sends" not in explained
    listed = scene.succeed("findings", "--system", "mailbox_paths").stdout
    assert f"registered for mailbox {boxes.ids['i']}, and mailbox {boxes.ids['h']}" in listed
    assert "`reconcile mailboxes`" in scene.succeed("status").stdout
    assert scene.command("mailboxes").returncode == ExitCode.PROBLEMS


def test_each_ends_by_itself_once_both_sides_agree(
    scene: Scene, boxes: Boxes, planted: Tables
) -> None:
    until("all are reported", lambda: open_now(scene).keys() >= CONFLICTS.keys())
    mend(boxes)
    after = boxes.tables()
    until("all have ended", lambda: open_now(scene) == {})
    assert boxes.tables() == after
    assert scene.metric("reconciler_repairs_total") == 0


def test_events_of_the_table_with_a_user_defined_type_are_received(
    scene: Scene, boxes: Boxes
) -> None:
    """Rows of the first minute after capture was turned on are not compared."""
    settings = load(scene.stream.config)
    boxes.path("heard", "e")

    def heard() -> list[TableHeard]:
        boxes.mailbox("e", "heard")
        later = now_micros() + SETTLED + SECOND
        with logged_in(settings.cassandra) as cluster, closing(Watcher(settings.kafka)) as watcher:
            writes, topic = cluster.recent_writes(scene.keyspace), settings.kafka.topic_prefix
            tables = UnheardTables(writes, watcher, scene.keyspace, topic)
            found = tables.compared([MAILBOX], cluster.schema(scene.keyspace), later)
            return [each for each in found if not each.unheard]

    (found,) = until("its events have come", heard)
    assert found.table == "mailbox"
    assert found.compared > 0
