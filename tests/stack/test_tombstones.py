"""Repairs whose first timestamp falls behind a tombstone, on a real Cassandra.

The time of a tombstone cannot be read. So a repair that did not hold is tried again with a newer
timestamp, one delay later; it then holds and is verified, or is stuck after the last attempt.
"""

from dataclasses import replace

import pytest

from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock, Message
from reconcilers.limits.hold import Hold
from reconcilers.rows.decision import retried
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import last_repair
from reconcilers.words.model import Kind, Micros
from streaming.steps.undo import RowUndo, Undoing
from tests.stack.rounds import (
    DELAY,
    MOST_ATTEMPTS,
    SECOND,
    Ground,
    Rounds,
    Rows,
    let_a_delay_pass,
)
from tests.stack.users import RIGHT, User, a_message, slot_of

pytestmark = pytest.mark.stack

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.fixture
def rounds(here: Ground) -> Rounds:
    return Rounds(here)


@pytest.fixture
def rows(here: Ground) -> Rows:
    return Rows(here.session, here.keyspace)


@pytest.fixture
def message() -> Message:
    return a_message(RIGHT, born=now_micros() - HOUR)


def user(here: Ground, ahead: Micros) -> User:
    """One whose server's clock differs so much: a way to write long ago, or in the future."""
    return User(here.session, here.keyspace, Clock(ahead // 1000).now_us)


def update(here: Ground, message: Message, cells: str, at: Micros) -> None:
    """An update of the projection row with this write time (µs)."""
    here.session.execute(
        f"UPDATE {here.keyspace}.messageidtable USING TIMESTAMP %s SET {cells}"
        " WHERE mailboxid = %s AND uid = %s",
        (at, message.mailboxid, message.uid),
    )


def the_finding(rounds: Rounds, message: Message) -> Finding:
    (finding,) = rounds.findings([slot_of(message)]).values()
    return finding


def history(rounds: Rounds, message: Message) -> list[tuple[str, int]]:
    return [(line["state"], line["attempts"]) for line in rounds.log_of(slot_of(message))]


HELD_AT_THE_SECOND = [("intended", 1), ("intended", 2), ("verified", 2)]


def the_next_attempt_and_its_look(rounds: Rounds) -> None:
    let_a_delay_pass()
    rounds.round()
    rounds.round()


def test_a_missing_row_behind_a_newer_tombstone_comes_back_with_the_next_attempt(
    here: Ground, rounds: Rounds, rows: Rows, message: Message
) -> None:
    rounds.due += user(here, -HOUR).adds(message).truth()
    user(here, -MINUTE).deletes(message).projection()
    rounds.round()
    assert rows.projected(message) is None
    the_next_attempt_and_its_look(rounds)
    assert rows.differences(message) == []
    assert history(rounds, message) == HELD_AT_THE_SECOND


def test_a_row_that_its_user_added_again_behind_a_tombstone_comes_back_with_the_next_attempt(
    here: Ground, rounds: Rounds, rows: Rows, message: Message
) -> None:
    """Deleted by one server, added again by another, whose clock is behind; nothing was heard."""
    before, after = user(here, -MINUTE), user(here, -MINUTE - 300_000)
    user(here, -HOUR).adds(message).projection()
    before.deletes(message).projection()
    again = after.adds(message)
    rounds.due += again.truth() + again.projection()
    rounds.round()
    assert rows.projected(message) is None
    the_next_attempt_and_its_look(rounds)
    assert rows.differences(message) == []
    assert history(rounds, message) == HELD_AT_THE_SECOND


@pytest.mark.parametrize(
    "cleared", ["headercontent = null", "userflags = {}", "modseq = null", "messageid = null"]
)
def test_cells_behind_a_newer_tombstone_come_back_with_the_next_attempt(
    here: Ground, rounds: Rounds, rows: Rows, message: Message, cleared: str
) -> None:
    added = user(here, -HOUR).adds(message)
    rounds.due += added.truth() + added.projection()
    update(here, message, cleared, now_micros() - MINUTE)
    rounds.round()
    assert rows.differences(message) != []
    the_next_attempt_and_its_look(rounds)
    assert rows.differences(message) == []
    assert history(rounds, message) == HELD_AT_THE_SECOND


def test_an_undo_takes_back_both_attempts(
    here: Ground, rounds: Rounds, rows: Rows, message: Message
) -> None:
    """The first holds for one cell and not for the other, which only the second corrects."""
    added, slot = user(here, -HOUR).adds(message), slot_of(message)
    rounds.due += added.truth() + added.projection()
    update(here, message, "flagseen = true", now_micros() - HOUR + SECOND)
    update(here, message, "headercontent = null", now_micros() - MINUTE)
    before = here.tables.projection_rows(here.projection, [slot])
    rounds.round()
    the_next_attempt_and_its_look(rounds)
    assert rows.differences(message) == []
    assert history(rounds, message) == HELD_AT_THE_SECOND
    repair = last_repair(here.journal.history(here.family, here.projection.name, slot))
    assert isinstance(repair, Finding)
    undoing = RowUndo(
        here.family, here.tables, here.journal, here.lineage, lambda *_: None, now_micros
    )
    hold = Hold(here.family.name, here.projection.name, slot, now_micros(), "ana", "a test")
    assert undoing.carry_out(repair, hold).what is Undoing.DONE
    assert here.tables.projection_rows(here.projection, [slot]) == before


def test_a_row_behind_a_tombstone_of_the_future_is_stuck_until_a_person_or_a_user_acts(
    here: Ground, rounds: Rounds, rows: Rows, message: Message
) -> None:
    rounds.due += user(here, -HOUR).adds(message).truth()
    user(here, HOUR).deletes(message).projection()
    rounds.round()
    for _ in range(MOST_ATTEMPTS):
        let_a_delay_pass()
        rounds.round()
    stuck = the_finding(rounds, message)
    assert (stuck.state, stuck.kind) == (State.STUCK, Kind.MISSING_ROW)
    assert stuck.attempts == MOST_ATTEMPTS
    assert "3 repairs did not hold" in stuck.sentence
    assert rows.projected(message) is None

    sent = len(rounds.repairs())
    rounds.look_again_at([slot_of(message)])
    rounds.round()
    assert len(rounds.repairs()) == sent, "a stuck repair is not tried again by itself"

    here.journal.put(retried(stuck, now_micros()))
    rounds.look_again_at([slot_of(message)])
    rounds.round()
    assert the_finding(rounds, message).state is State.INTENDED

    user(here, HOUR + SECOND).adds(message).projection()
    rounds.round()
    assert rows.differences(message) == []
    assert history(rounds, message)[-1][0] == "verified"


def test_attempts_are_a_delay_apart_however_often_the_key_comes(
    here: Ground, rounds: Rounds, message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all would be used up while a tombstone is younger than the delay."""
    monkeypatch.setattr("tests.stack.rounds.DELAY", MINUTE)  # no round here takes so long
    rounds.due += user(here, -HOUR).adds(message).truth()
    user(here, HOUR).deletes(message).projection()
    rounds.round()
    first = the_finding(rounds, message)
    while now_micros() < first.tried_at + DELAY // 2:
        rounds.look_again_at([slot_of(message)])
        rounds.round()
    assert the_finding(rounds, message) == replace(
        first, next_look=the_finding(rounds, message).next_look
    )
    assert len(rounds.repairs()) == 1
