"""A message changes at an exact point of a repair of its references, on a real Cassandra.

Every difference, every act of a user, at every point of a look, a confirmation and a write, by
clocks 300 ms ahead of and behind ours. Nothing that a living message refers to is removed, what
James writes meanwhile stands, and later rounds make all references those of the lists. All cases
are played side by side, each with messages of its own, and with an attachment that two share.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.words.model import Kind
from tests.endpoints import Endpoints
from tests.stack.attachment_rounds import BEFORE_CONTENT, Asking, Mail
from tests.stack.rounds import (
    CLOCKS_MS,
    LONG_AGO,
    Ground,
    Point,
    Rounds,
    Stopping,
    ground,
    let_a_delay_pass,
    until_rest,
)

pytestmark = pytest.mark.stack

MISSING, UNNAMED, GONE = "reference missing", "not named by its list", "message gone"
COPY, EXPUNGE, APPEND, AGAIN = "copy", "expunge", "append late", "append again"
ACTS = {MISSING: (COPY, EXPUNGE, AGAIN), UNNAMED: (COPY, EXPUNGE, AGAIN), GONE: (APPEND, AGAIN)}
"""What users do; a message that is gone may be one whose append has not ended."""


@dataclass(frozen=True)
class Case:
    """A difference, an act, and the point at which it is done."""

    fault: str
    act: str
    point: str
    clock_ms: int


CASES = [
    Case(fault, act, point, clock_ms)
    for fault, acts in ACTS.items()
    for act in acts
    for point in (*Point, BEFORE_CONTENT)
    for clock_ms in CLOCKS_MS
]


@dataclass
class Played:
    """One case on its way: its message, another that shares the attachment, a third that may come.

    ``wanted`` are the messages that name the attachment now.
    """

    case: Case
    mail: Mail
    rounds: Rounds
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    message: UUID = field(default_factory=uuid.uuid1)
    other: UUID = field(default_factory=uuid.uuid1)
    third: UUID = field(default_factory=uuid.uuid1)
    wanted: set[UUID] = field(default_factory=set)
    done: bool = False
    lost: list[str] = field(default_factory=list)

    def plant(self) -> None:
        """The difference, a minute old, and the other message, which is right."""
        then, name = now_micros() - LONG_AGO, self.name
        self._append(self.other, then)
        if self.case.fault is not MISSING:
            self.mail.refer(name, self.message, then)
        if self.case.fault is not GONE:
            named = name if self.case.fault is MISSING else f"another than {name}"
            self.mail.fill(self.message, [named], then)
            self.mail.place(self.message, 1)
        if self.case.fault is MISSING:
            self.wanted.add(self.message)

    def _append(self, message: UUID, at: int) -> None:
        self.mail.refer(self.name, message, at)
        self.mail.fill(message, [self.name], at)
        self.mail.place(message, 1)
        self.wanted.add(message)

    def stop(self, point: str) -> None:
        """Let the user in, once, at the point of the case; whatever is wanted is there."""
        if point != self.case.point or self.done:
            return
        self.done, at = True, Clock(self.case.clock_ms).now_us()
        match self.case.act:
            case "copy":
                self.mail.place(self.message, 2)
            case "expunge":
                self.wanted.discard(self.message)
                self.mail.displace(self.message)
                self.mail.forget(self.name, self.message, at)
                self.mail.empty(self.message, at)
            case "append late":
                self._append_rest(at)
            case "append again":
                self._append(self.third, at)

    def _append_rest(self, at: int) -> None:
        """Content and place of a message whose reference was written before."""
        self.mail.fill(self.message, [self.name], at)
        self.mail.place(self.message, 1)
        self.wanted.add(self.message)

    def round(self) -> bool:
        """A round; whether there was anything to do. What others need must still be there."""
        busy = bool(self.rounds.due)
        if busy:
            self.rounds.round()
        there = self.mail.references(self.name)
        kept = self.wanted - {self.message}
        if not kept <= there:
            self.lost.append(f"lost {kept - there}")
        return busy


@pytest.fixture(scope="module")
def here(
    stack: Endpoints, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("attachments")
    with ground(stack, cassandra, folder, ATTACHMENT_REFERENCE) as made:
        yield made


@pytest.fixture(scope="module")
def played(here: Ground) -> dict[Case, Played]:
    """All cases, from the planted difference to rest."""
    plays = {}
    for case in CASES:
        rounds = Rounds(here)
        plays[case] = play = Played(case, Mail(here.session, here.keyspace, rounds), rounds)
        play.plant()
    for case, play in plays.items():
        if case.fault is not MISSING:  # a removal takes two looks; the second one is raced
            play.rounds.contents = here.contents
            play.round()
    let_a_delay_pass()
    for play in plays.values():
        play.rounds.tables = Stopping(here.tables, play.stop)
        play.rounds.contents = Asking(here.contents, play.stop)
        play.round()
        for point in (*Point, BEFORE_CONTENT):  # one that was not reached comes after it
            play.stop(point)
    until_rest(plays.values(), Played.round)
    return plays


@pytest.fixture(params=ACTS)
def plays(request: pytest.FixtureRequest, played: dict[Case, Played]) -> dict[Case, Played]:
    """Those of one difference."""
    return {case: play for case, play in played.items() if case.fault == request.param}


def test_no_reference_of_another_message_is_ever_removed(plays: dict[Case, Played]) -> None:
    assert {case: play.lost for case, play in plays.items() if play.lost} == {}


def test_later_rounds_make_all_references_those_of_the_lists(plays: dict[Case, Played]) -> None:
    found = {case: play.mail.references(play.name) for case, play in plays.items()}
    assert found == {case: play.wanted for case, play in plays.items()}
    for case, play in plays.items():
        assert play.rounds.due == [], case
        found_here = play.rounds.findings([play.mail.slot(play.name, play.message)])
        reported = {each.kind for each in found_here.values()}  # until the finding's own next look
        assert reported <= ({Kind.ABSENT_WITHOUT_DELETE} if case.act == APPEND else set()), case
        assert play.rounds.failures == [], case


def test_repairs_were_raced(plays: dict[Case, Played]) -> None:
    sent = {case: len(play.rounds.repairs()) for case, play in plays.items()}
    raced = [case for case in sent if case.point in (Point.JOURNALLED, Point.REPAIRED)]
    assert raced
    assert all(sent[case] for case in raced)


def test_what_is_wanted_and_was_removed_by_a_late_append_came_back(
    played: dict[Case, Played],
) -> None:
    late = [play for case, play in played.items() if case.act == APPEND]
    assert all(play.message in play.mail.references(play.name) for play in late)
    assert any(len(play.rounds.repairs()) > 1 for play in late)
