"""An attachment is written again or deleted while its message is corrected, on a real Cassandra.

Every wrong message of a row, every act of a user, at every point of a look, a confirmation and a
write, by clocks 300 ms ahead of and behind ours. What a user wrote meanwhile stands as it was
written, a row that was deleted does not come back, and later rounds correct what is left. All cases
are played side by side, each with messages of its own.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock
from reconcilers.declared.families.attachment import ATTACHMENT
from tests.endpoints import Endpoints
from tests.stack.attachment_rounds import Mail
from tests.stack.rounds import (
    CLOCKS_MS,
    LONG_AGO,
    Ground,
    Point,
    Rounds,
    Stopping,
    ground,
    until_rest,
)

pytestmark = pytest.mark.stack

NONE, GONE = "names no message", "names a message that is gone"
COPY, EXPUNGE, AGAIN = "copy", "expunge", "append again"


@dataclass(frozen=True)
class Case:
    """A row that is wrong, an act, and the point at which it is done."""

    fault: str
    act: str
    point: Point
    clock_ms: int


CASES = [
    Case(fault, act, point, clock_ms)
    for fault in (NONE, GONE)
    for act in (COPY, EXPUNGE, AGAIN)
    for point in Point
    for clock_ms in CLOCKS_MS
]


@dataclass
class Played:
    """One case: its message, which names the attachment, and a later one that comes to share it."""

    case: Case
    mail: Mail
    rounds: Rounds
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    message: UUID = field(default_factory=uuid.uuid1)
    later: UUID = field(default_factory=uuid.uuid1)
    done: bool = False
    overridden: list[Any] = field(default_factory=list)

    def plant(self) -> None:
        """The row, a minute old, and its message."""
        then = now_micros() - LONG_AGO
        self.mail.store(self.name, None if self.case.fault is NONE else uuid.uuid1(), then)
        self.mail.fill(self.message, [self.name], then)
        self.mail.place(self.message, 1)

    @property
    def wanted(self) -> tuple[Any, ...] | None:
        """The row as the user has left it, with its message."""
        match self.case.act:
            case "expunge":
                return None
            case "append again":
                return (self.name, "blob again", 7, self.later)
            case _:
                return (self.name, "blob", 7, self.message)

    def stop(self, point: Point) -> None:
        """Let the user in, once, at the point of the case."""
        if point is not self.case.point or self.done:
            return
        self.done, at = True, Clock(self.case.clock_ms).now_us()
        match self.case.act:
            case "copy":
                self.mail.place(self.message, 2)
            case "expunge":
                self.mail.displace(self.message)
                self.mail.discard(self.name, self.message, at)
                self.mail.empty(self.message, at)
            case "append again":
                self.mail.store(self.name, self.later, at, blob="blob again")
                self.mail.fill(self.later, [self.name], at)
                self.mail.place(self.later, 1)

    def round(self) -> bool:
        """A round; whether there was anything to do. What the user wrote must still be there."""
        busy = bool(self.rounds.due)
        if busy:
            self.rounds.round()
        if self.done and self.case.act is not COPY and self.row() != self.wanted:
            self.overridden.append(self.row())
        return busy

    def row(self) -> tuple[Any, ...] | None:
        return self.mail.row(self.name)


@pytest.fixture(scope="module")
def here(
    stack: Endpoints, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    with ground(stack, cassandra, tmp_path_factory.mktemp("rows"), ATTACHMENT) as made:
        yield made


@pytest.fixture(scope="module")
def played(here: Ground) -> dict[Case, Played]:
    """All cases, from the planted row to rest."""
    plays = {}
    for case in CASES:
        rounds = Rounds(here, contents=here.contents)
        plays[case] = play = Played(case, Mail(here.session, here.keyspace, rounds), rounds)
        rounds.tables = Stopping(here.tables, play.stop)
        play.plant()
    until_rest(plays.values(), Played.round)
    return plays


def test_what_a_user_wrote_meanwhile_is_never_overridden(played: dict[Case, Played]) -> None:
    assert all(play.done for play in played.values())
    assert {case: play.overridden for case, play in played.items() if play.overridden} == {}


def test_later_rounds_make_each_row_right(played: dict[Case, Played]) -> None:
    assert {case: play.row() for case, play in played.items()} == {
        case: play.wanted for case, play in played.items()
    }
    for case, play in played.items():
        assert play.rounds.due == [], case
        assert play.rounds.findings([play.mail.slot(play.name, play.message)]) == {}, case
        assert play.rounds.failures == [], case


def test_corrections_were_raced(played: dict[Case, Played]) -> None:
    sent = {case: len(play.rounds.repairs()) for case, play in played.items()}
    raced = (Point.CONFIRMED, Point.JOURNALLED, Point.REPAIRED)
    assert {case: sent[case] for case in sent if case.point in raced} == {
        case: 1 for case in sent if case.point in raced
    }
