"""The list of a mailbox changes at an exact point of a repair of its rows, on a real Cassandra.

Both tables of rights, every difference, every change, every two points at which the event and the
subscriber's write to the row arrive, by clocks 300 ms ahead of and behind ours, and with that write
lost. What the subscriber wrote stands, and later rounds make all rows those of the list. A row of
a list that no event has ever named is a person's to remove, since its letters have no write time.
All cases are played side by side, each with a user and a mailbox of its own.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Slot, Wake
from tests.endpoints import Endpoints
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

List = Mapping[str, str]
NEVER = Kind.ABSENT_WITHOUT_DELETE
"""A row that no list has ever named."""


@dataclass(frozen=True)
class Case:
    """A difference, a change of the list, and where its statements arrive; None: one is lost."""

    kind: Kind
    change: str
    event: Point
    write: Point | None
    clock_ms: int


def points() -> Iterator[tuple[Point, Point | None]]:
    order = list(Point)
    for number, event in enumerate(order):
        for write in order[number:]:
            yield event, write
        yield event, None


CHANGES: Mapping[str, str | None] = {"grants": "lrw", "restricts": "l", "revokes": None}
CASES = [
    Case(kind, change, *where, clock_ms)
    for kind in (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW, NEVER)
    for change in CHANGES
    for where in points()
    for clock_ms in CLOCKS_MS
    if where[1] is not None or clock_ms == 0
]


Statement = tuple[str, list[Any]]
"""CQL with ``{table}`` and ``{at}``, and its values; empty: nothing is written."""


class OfUsers:
    """Rows of users, as `CassandraUserMailboxRightsDAO` writes them."""

    family = RIGHTS
    held: Kind | None = None
    """What is reported and never repaired."""
    where = "username = %s AND mailboxid = %s"

    def slot(self, name: str, mailbox: UUID) -> Slot:
        return Slot(name, mailbox)

    def statement(self, key: Sequence[Any], before: str | None, new: str | None) -> Statement:
        """What replaces the letters before."""
        if new is None:
            return f"DELETE FROM {{table}} USING TIMESTAMP {{at}} WHERE {self.where}", [*key]
        columns = "(username, mailboxid, rights) VALUES (%s, %s, %s)"
        return f"INSERT INTO {{table}} {columns} USING TIMESTAMP {{at}}", [*key, new]

    def stands(self, before: str | None, new: str | None, shown: str | None) -> bool:
        """Whether what was written shows."""
        return shown == new


class OfLists(OfUsers):
    """Rows of lists, as `CassandraACLDAOV2` writes them: letters are added, removed, replaced."""

    family = RIGHT_LISTS
    held = NEVER
    where = "id = %s AND key = %s"

    def slot(self, name: str, mailbox: UUID) -> Slot:
        return Slot(mailbox, name)

    def statement(self, key: Sequence[Any], before: str | None, new: str | None) -> Statement:
        if before is None and new is None:
            return "", []
        how = "rights + %s" if before is None else "%s" if new is not None else "rights - %s"
        letters = set(str(before if new is None else new))
        update = f"UPDATE {{table}} USING TIMESTAMP {{at}} SET rights = {how} WHERE {self.where}"
        return update, [letters, *key]

    def stands(self, before: str | None, new: str | None, shown: str | None) -> bool:
        there = set(shown or "")
        if before is None:
            return there >= set(new or "")
        return not there & set(before) if new is None else there == set(new)


@dataclass
class Played:
    """One case on its way, and the letters in its row at its turns; None: no row."""

    case: Case
    rounds: Rounds
    rows: OfUsers
    user: str
    mailbox: UUID = field(default_factory=uuid.uuid1)
    lists: list[List] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    repairs_raced: int = 0
    after_race: str | None = None
    at_end: str | None = None

    @property
    def before(self) -> str | None:
        """The user's letters in the list before it is changed."""
        return None if self.case.kind in (Kind.EXTRA_ROW, NEVER) else "lr"

    def execute(self, cql: str, *values: Any) -> Any:
        ground = self.rounds.ground
        return ground.session.execute(cql.replace("$mail", ground.keyspace), values)

    @property
    def is_held(self) -> bool:
        return self.case.kind is self.rows.held

    @property
    def left(self) -> str | None:
        """The letters that must be in its row at the end."""
        new = CHANGES[self.case.change]
        return "lr" if new is None and self.is_held else new

    @property
    def open(self) -> dict[Slot, Finding]:
        return self.rounds.findings([self.rows.slot(self.user, self.mailbox)])

    @property
    def table(self) -> str:
        return f"$mail.{self.rounds.ground.projection.table}"

    def plant(self) -> None:
        """The difference; its row is as old as `LONG_AGO`."""
        other, listed = {"eve": "l"}, {self.user: "lr"}
        row = {Kind.MISSING_ROW: None, Kind.DIFFERING_CELLS: "lw"}.get(self.case.kind, "lr")
        self.add_event(other if self.case.kind is NEVER else {**other, **listed})
        if self.case.kind is Kind.EXTRA_ROW:
            self.add_event(other)
        then = now_micros() - LONG_AGO
        self.write("eve", None, "l", then)
        if row is not None:
            self.write(self.user, None, row, then)

    def add_event(self, new: List) -> None:
        """As a lightweight transaction; the stream hears of it."""
        number, before = len(self.lists), self.lists[-1] if self.lists else {}
        difference = {"oldAcl": {"entries": before}, "newAcl": {"entries": new}}
        told = {"eventId": number, "aggregateKey": str(self.mailbox), "type": "acl-updated"}
        self.execute(
            "INSERT INTO $mail.eventstore (aggregateid, eventid, event) VALUES (%s, %s, %s)"
            " IF NOT EXISTS",
            *(str(self.mailbox), number, json.dumps({**told, "aclDiff": difference})),
        )
        self.lists.append(new)
        parts = self.rows.slot("", self.mailbox).key
        self.hear(Wake(tuple(each or None for each in parts), self.mailbox, from_truth=True))

    def write(self, user: str, before: str | None, new: str | None, at: int) -> None:
        """As James's subscriber; the stream hears of it."""
        key = self.rows.slot(user, self.mailbox).key
        cql, values = self.rows.statement(key, before, new)
        if cql:
            self.execute(cql.format(table=self.table, at=at), *values)
            self.hear(Wake(key, self.mailbox))

    def hear(self, wake: Wake) -> None:
        self.rounds.due.append(wake)

    def stop(self, point: Point) -> None:
        """Let the change in: each statement once, at its point."""
        new = CHANGES[self.case.change]
        if point is self.case.event and "event" not in self.sent:
            self.sent.add("event")
            kept = {"eve": "l"}
            self.add_event(kept if new is None else {**kept, self.user: new})
        if point is self.case.write and "write" not in self.sent:
            self.sent.add("write")
            self.write(self.user, self.before, new, Clock(self.case.clock_ms).now_us())

    def race(self) -> None:
        """The round in which the list changes; a point that it does not reach comes after it."""
        self.rounds.tables = Stopping(self.rounds.ground.tables, self.stop)
        self.rounds.round()
        self.repairs_raced = len(self.rounds.repairs())
        for point in Point:
            self.stop(point)
        self.after_race = self.shown(self.user)

    def go_on(self) -> bool:
        """A later round; whether there was anything to do."""
        busy = bool(self.rounds.due)
        if busy:
            self.rounds.round()
        self.at_end = self.shown(self.user)
        return busy

    def shown(self, user: str) -> str | None:
        key = self.rows.slot(user, self.mailbox).key
        row = self.execute(f"SELECT rights FROM {self.table} WHERE {self.rows.where}", *key).one()
        return None if row is None else "".join(sorted(row.rights or ()))


@pytest.fixture(scope="module", params=[OfUsers(), OfLists()], ids=["users", "lists"])
def played(
    request: pytest.FixtureRequest,
    stack: Endpoints,
    cassandra: Session,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[Case, Played]]:
    """All cases of one table, from the planted difference to rest."""
    rows, folder = request.param, tmp_path_factory.mktemp("rights")
    with ground(stack, cassandra, folder, rows.family) as made:
        yield dict(zip(CASES, _played(made, rows), strict=True))


def _played(made: Ground, rows: OfUsers) -> list[Played]:
    plays = [Played(case, Rounds(made), rows, f"user{number}") for number, case in enumerate(CASES)]
    for play in plays:
        play.plant()
    let_a_delay_pass()  # an event has no write time but that of its transaction
    for play in plays:
        if play.case.kind is NEVER:  # it is removed at the second look
            play.rounds.round()
    let_a_delay_pass()
    for play in plays:
        play.race()
    until_rest(plays, Played.go_on)
    held = [play for play in plays if play.is_held]
    for play in held:  # as their time comes
        play.rounds.look_again_at(play.open)
    until_rest(held, Played.go_on)
    return plays


# --- what must hold -------------------------------------------------------------------------------


@pytest.fixture(params=(Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW, NEVER), ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


@pytest.fixture(params=CHANGES)
def plays(
    request: pytest.FixtureRequest, kind: Kind, played: dict[Case, Played]
) -> dict[Case, Played]:
    """Those of one kind and change, at all points and by all clocks."""
    wanted = (kind, request.param)
    return {case: play for case, play in played.items() if (case.kind, case.change) == wanted}


def test_the_row_that_was_written_meanwhile_is_never_overridden(plays: dict[Case, Played]) -> None:
    for case, play in plays.items():
        if case.write is not None:
            new, shown = CHANGES[case.change], play.after_race
            assert play.rows.stands(play.before, new, shown), (case, shown)


def test_later_rounds_make_every_row_that_of_the_list(plays: dict[Case, Played]) -> None:
    """Also where the subscriber's write was lost: nothing that should be gone survives."""
    found = {case: play.at_end for case, play in plays.items()}
    assert found == {case: play.left for case, play in plays.items()}
    for case, play in plays.items():
        assert play.shown("eve") == "l", case
        assert play.rounds.due == [], case
        kept = play.left != CHANGES[case.change]
        assert [each.state for each in play.open.values()] == [State.REPORTED] * kept, case
        assert play.rounds.failures == [], case


def test_a_repair_is_raced_wherever_the_change_comes_after_the_reads(
    plays: dict[Case, Played],
) -> None:
    unaware = {Point.CONFIRMED, Point.JOURNALLED, Point.REPAIRED}
    raced = {case: play for case, play in plays.items() if case.event in unaware}
    assert raced
    for case, play in raced.items():
        assert play.repairs_raced == (not play.is_held), case
