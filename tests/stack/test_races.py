"""A user writes at an exact point of a confirmation or repair, on a real Cassandra.

Every point, every kind of difference, every change of a user, by clocks 300 ms ahead of and behind
ours: what the user wrote stands, and later rounds converge. All cases are played side by side, so
that the delays between rounds are waited for once; then each is a test.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from checkpoints.clock import now_micros
from deploy.comparison.messages import Mismatch
from deploy.mailserver.mail import Clock, Flags, Message
from reconcilers.words.model import Kind
from tests.stack.rounds import (
    CLOCKS_MS,
    LONG_AGO,
    Ground,
    Point,
    Rounds,
    Rows,
    Stopping,
    until_rest,
)
from tests.stack.users import RIGHT, Change, User, a_difference, a_message, no_statement, slot_of

pytestmark = pytest.mark.stack

WANTED = Flags(frozenset({"answered"}), frozenset({"stale", "mine"}))
"""What a user sets: in each cell the opposite of what a repair sets."""


class Act(StrEnum):
    """What the user does meanwhile."""

    FLAGS = "changes flags"
    DELETE = "deletes"
    ADD_AGAIN = "adds again"


@dataclass(frozen=True)
class Case:
    """A difference, a user's act, and the points at which its two statements arrive."""

    kind: Kind
    act: Act
    truth: Point
    projection: Point
    clock_ms: int

    def __str__(self) -> str:
        return (
            f"{self.kind}, user {self.act} at {self.clock_ms:+} ms:"
            f" truth {self.truth}, projection {self.projection}"
        )


def points(act: Act) -> Iterator[tuple[Point, Point]]:
    """Both statements together, or one of them late. A delete goes to both tables in parallel."""
    for point in Point:
        yield point, point
        if point is not Point.REPAIRED:
            yield point, Point.REPAIRED
            if act is Act.DELETE:
                yield Point.REPAIRED, point


CASES = [
    Case(kind, act, *where, clock_ms)
    for kind in (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)
    for act in Act
    for where in points(act)
    for clock_ms in CLOCKS_MS
]


@dataclass
class Played:
    """One case on its way, and what the tables held at its turns."""

    case: Case
    message: Message
    wanted: Message
    user: Change
    rounds: Rounds
    repairs_raced: int = 0
    after_race: dict[str, Any] | None = None
    at_end: dict[str, Any] | None = None
    differences: list[Mismatch] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)

    def stop(self, point: Point) -> None:
        """Let the user in: each statement once, at its point."""
        for half, due in enumerate((self.case.truth, self.case.projection)):
            if due is point and half not in self.sent:
                self.sent.add(half)
                self.rounds.due += (self.user.truth, self.user.projection)[half]()

    def race(self, rows: "Rows") -> None:
        """The round in which the user comes in; a point that it does not reach comes after it."""
        self.rounds.round()
        self.repairs_raced = len(self.rounds.repairs())
        for point in Point:
            self.stop(point)
        self.after_race = rows.projected(self.message)

    def go_on(self, rows: "Rows") -> bool:
        """A later round; whether there was anything to do."""
        busy = bool(self.rounds.due)
        if busy:
            self.rounds.round()
        self.at_end = rows.projected(self.message)
        self.differences = rows.differences(self.message)
        return busy


@pytest.fixture(scope="module")
def played(here: Ground) -> dict[Case, Played]:
    """All cases, from the planted difference to rest."""
    plays = {case: planted(here, case) for case in CASES}
    rows = Rows(here.session, here.keyspace)
    for play in plays.values():
        play.race(rows)
    until_rest(plays.values(), lambda play: play.go_on(rows))
    return plays


def planted(here: Ground, case: Case) -> Played:
    """A difference as old as `LONG_AGO`, of which the stream hears now."""
    then = now_micros() - LONG_AGO
    message = a_message(RIGHT, born=then)
    before = User(here.session, here.keyspace, Clock(-LONG_AGO // 1000).now_us)
    user = User(here.session, here.keyspace, Clock(case.clock_ms).now_us)
    heard = a_difference(case.kind, message, before)
    change, wanted = changed(user, case, message)
    rounds = Rounds(here, due=heard)
    play = Played(case, message, wanted, change, rounds)
    rounds.tables = Stopping(here.tables, play.stop)
    return play


def changed(user: User, case: Case, message: Message) -> tuple[Change, Message]:
    """The user's change of this case, and the message as the user wants it."""
    wanted = Message(message.content, message.mailboxid, message.uid, message.modseq + 1, WANTED)
    match case.act:
        case Act.FLAGS:
            change = user.sets_flags(message, WANTED)
            if case.kind is Kind.EXTRA_ROW:  # a late statement of before the delete
                change = Change(no_statement, change.projection)
        case Act.DELETE:
            change = user.deletes(message)
        case _ if case.kind is Kind.EXTRA_ROW:
            change = user.adds(wanted)
        case _:
            change = user.adds_again(wanted)
    return change, wanted


def flags_of(row: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """What a change of flags writes: answered, seen, user flags, modseq."""
    if row is None:
        return None
    user_flags = set(row["userflags"] or ())
    changed_ones = {flag: flag in user_flags for flag in ("stale", "mine")}
    return row["modseq"], row["flaganswered"], row["flagseen"], changed_ones


# --- what must hold -------------------------------------------------------------------------------


@pytest.fixture(params=(Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW), ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture(params=Act, ids=lambda act: f"user {act}")
def act(request: pytest.FixtureRequest) -> Act:
    return Act(request.param)


@pytest.fixture(params=CLOCKS_MS, ids=lambda ahead: f"clock {ahead:+} ms")
def plays(
    request: pytest.FixtureRequest, kind: Kind, act: Act, played: dict[Case, Played]
) -> list[Played]:
    """Those of one kind, act and clock, at all points."""
    wanted = (kind, act, request.param)
    return [play for case, play in played.items() if (case.kind, case.act, case.clock_ms) == wanted]


def test_what_the_user_wrote_stands(plays: list[Played], kind: Kind, act: Act) -> None:
    wanted = None
    if act is not Act.DELETE:
        wanted = (plays[0].wanted.modseq, True, False, {"stale": True, "mine": True})
    after_race = {str(play.case): flags_of(play.after_race) for play in plays}
    assert after_race == dict.fromkeys(after_race, wanted)
    if act is Act.FLAGS and kind is Kind.EXTRA_ROW:
        wanted = None  # what was left of the row was removed later, as the truth has it
    at_end = {str(play.case): flags_of(play.at_end) for play in plays}
    assert at_end == dict.fromkeys(at_end, wanted)


def test_later_rounds_converge(plays: list[Played]) -> None:
    for play in plays:
        assert play.differences == [], play.case
        assert play.rounds.due == [], play.case
        assert play.rounds.findings([slot_of(play.message)]) == {}, play.case
        assert play.rounds.failures == [], play.case


def test_a_repair_is_raced_wherever_the_user_comes_after_the_reads(plays: list[Played]) -> None:
    unaware = {Point.CONFIRMED, Point.JOURNALLED, Point.REPAIRED}
    sent = {
        str(play.case): play.repairs_raced
        for play in plays
        if {play.case.truth, play.case.projection} <= unaware
    }
    assert sent == dict.fromkeys(sent, 1)
    assert sent
