"""What only a new process mends ends the process with exit code 5; the next one goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock
from reconcilers.words.exit_codes import ExitCode
from reconcilers.words.model import Kind
from tests.stack.streams import Stream, until
from tests.stack.users import PROJECTION, RIGHT, TRUTH, User, a_difference, a_message
from tests.stack.watched import SLOW, Restarted, Watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="servers")]

MANY = 40
"""More suspects than the driver examines by itself: they go to the workers."""
WHOLE = "sweep: lineage is complete"


@pytest.fixture
def restarted(place: Watched, tmp_path: Path) -> Iterator[Restarted]:
    made = place.stream(tmp_path)
    made.stream.start_watching()
    yield made
    made.forget()


def last_line(stream: Stream) -> str:
    """With which it has ended itself."""
    until("it ends", lambda: stream.died() is not None, SLOW)
    assert stream.died() == ExitCode.START_AGAIN, stream.log.read_text()[-3000:]
    stream.kill()
    lines = stream.log.read_text(encoding="utf-8").splitlines()
    return [each for each in lines if each.startswith("reconcile: ")][-1]


def plant(restarted: Restarted, many: int) -> None:
    """So many rows of the truth whose statement to the projection was lost."""
    user = User(restarted.place.session, restarted.place.keyspace, Clock().now_us)
    for _ in range(many):
        message = a_message(RIGHT, now_micros())
        a_difference(Kind.MISSING_ROW, message, user)
        restarted.planted[Kind.MISSING_ROW].append(message)


def goes_on(restarted: Restarted) -> None:
    """The next process repairs what the one before has left, and ends as it should."""
    restarted.stream.start_watching()
    restarted.await_convergence()
    assert restarted.stream.stop() == 0


def test_temporary_files_that_are_removed_under_a_stream(restarted: Restarted) -> None:
    stream = restarted.stream
    temporary = stream.checkpoint.parents[1] / "temporary"
    (folder,) = temporary.glob("process-*")
    removed = [*folder.glob("spark-*/pyspark-*"), *folder.glob("blockmgr-*")]
    assert len(removed) == 2, "Spark keeps its files in the process's own folder"
    for each in removed:
        shutil.rmtree(each)
    plant(restarted, MANY)
    line = last_line(stream)
    assert line.startswith(f"reconcile: temporary folder {folder}/"), line
    goes_on(restarted)
    (anew,) = temporary.glob("process-*")
    assert anew != folder, "what a dead process has left is removed"


# --- James's tables are altered


def alter(restarted: Restarted, change: str) -> None:
    """Both tables, as an upgrade of James does."""
    for table in (TRUTH, PROJECTION):
        restarted.place.session.execute(f"ALTER TABLE {restarted.place.keyspace}.{table} {change}")


def test_columns_that_are_added_and_dropped_under_a_stream(restarted: Restarted) -> None:
    alter(restarted, "ADD extra text")
    line = last_line(restarted.stream)
    assert line.endswith("messageidtable has extra"), line
    plant(restarted, 1)
    goes_on(restarted)
    restarted.stream.start_watching()
    alter(restarted, "DROP extra")
    plant(restarted, 1)
    line = last_line(restarted.stream)
    assert line.endswith("messageidtable lacks extra"), line
    goes_on(restarted)


@pytest.fixture
def sweeping(place: Watched, tmp_path: Path) -> Iterator[Restarted]:
    """A stream that sweeps by itself, and has done so."""
    made = place.stream(tmp_path, {"sweep": {"when_needed": True, "ranges": 4}})
    made.stream.start_watching()
    until("everything is swept", lambda: made.stream.said(WHOLE))
    yield made
    alter(made, "DROP extra")
    made.forget()


def test_what_the_agent_skips_after_a_column_was_added_is_swept(sweeping: Restarted) -> None:
    """It skips mutations that use the new column for about a second, for good, and no canary."""
    place, stream = sweeping.place, sweeping.stream
    alter(sweeping, "ADD extra text")
    plant(sweeping, 1)
    (message,) = sweeping.planted[Kind.MISSING_ROW]
    place.session.execute(
        f"UPDATE {place.keyspace}.{TRUTH} SET extra = 'new'"
        " WHERE messageid = %s AND mailboxid = %s AND uid = %s",
        (message.messageid, message.mailboxid, message.uid),
    )
    assert "has extra" in last_line(stream)
    swept = len(stream.said(WHOLE))
    stream.start()
    until("memory begins anew", lambda: stream.said("a watched table was recreated or altered"))
    until("everything is swept again", lambda: len(stream.said(WHOLE)) > swept)
    sweeping.await_convergence()
    (row,) = place.session.execute(
        f"SELECT extra FROM {place.keyspace}.{PROJECTION} WHERE mailboxid = %s AND uid = %s",
        (message.mailboxid, message.uid),
    )
    assert row.extra == "new"
