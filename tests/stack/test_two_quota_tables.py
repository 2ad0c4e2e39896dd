"""Both tables of quotas exist, and James writes the older one: its compatibility mode.

The newer one has rows of mail too, of a migration that has just run. The older is corrected as soon
as it is seen that James writes it. When James writes the newer one, that is corrected instead.
"""

from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from tests.builders.newer_james import add_newer_quotas
from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import SIZE, Counted, Newer
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = pytest.mark.stack

COUNT = 5
EVE = "#private&eve@example.org"
BOB, BOB_NEWER = "#private&bob@example.org", "#private&bob@example.org@example.org"


def older(root: str) -> str:
    """One message more, as James writes it."""
    return (
        "currentquota SET messagecount = messagecount + 1, storage = storage + 100"
        f" WHERE quotaroot = '{root}'"
    )


def newer(quotatype: str, value: int) -> str:
    """Bob's."""
    return (
        f"quotacurrentvalue SET currentvalue = currentvalue + {value}"
        f" WHERE identifier = '{BOB_NEWER}' AND quotacomponent = 'MAILBOX'"
        f" AND quotatype = '{quotatype}'"
    )


def just_migrated(session: Session, keyspace: str) -> None:
    """Bob's quota is in both tables: nobody can tell yet which of them James writes."""
    add_newer_quotas(session, keyspace)
    for update in (older(BOB), older(EVE), newer("count", 1), newer("size", 100)):
        session.execute(f"UPDATE {keyspace}.{update}")


@pytest.fixture(scope="module")
def both_scene(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes({"stream": {"delay": LATEST}, "tally": TALLIES}, prepared=just_migrated)


def wrong(box: Counted) -> Counted:
    box.create().hold(COUNT, 0).add(COUNT, 0)
    box.add_quota(COUNT - 2, (COUNT - 2) * SIZE)
    box.touch()
    return box


def becomes_right(box: Counted) -> None:
    until("the quota is right", lambda: box.quota() == (COUNT, COUNT * SIZE))


def newer_rows(scene: Scene) -> set[tuple[str, str, int]]:
    rows = scene.execute("SELECT * FROM $mail.quotacurrentvalue")
    of_mail = (row for row in rows if row.quotacomponent == "MAILBOX")
    return {(row.identifier, row.quotatype, row.currentvalue) for row in of_mail}


def written_until_kept(scene: Scene, update: str, table: str) -> None:
    """James goes on writing it until the stream has seen it."""

    def is_seen() -> bool:
        scene.execute(f"UPDATE $mail.{update}")
        return bool(scene.stream.said(f"is kept in {table}"))

    until(f"the stream keeps {table}", is_seen)


def test_the_table_that_james_writes_is_corrected(both_scene: Scene) -> None:
    """Its compatibility mode."""
    scene = both_scene
    assert "both exist: which James writes is not clear" in scene.command("doctor").stdout
    written_until_kept(scene, older(BOB), "currentquota")
    becomes_right(wrong(Counted(scene, user="ana@example.org")))
    assert newer_rows(scene) == {(BOB_NEWER, "count", 1), (BOB_NEWER, "size", 100)}


def test_the_other_is_corrected_as_soon_as_james_writes_it(both_scene: Scene) -> None:
    scene = both_scene
    written_until_kept(scene, newer("count", 1), "quotacurrentvalue")
    becomes_right(wrong(Newer(scene, user="eve@example.org")))
    assert Counted(scene, user="eve@example.org").quota() == (1, 100)
