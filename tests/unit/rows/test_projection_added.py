"""A projection is one declaration: one that the product does not have, through every step.

Its key column is called `answered_uid`. Step 2 is in `tests/spark/test_declared_keys.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from deploy import roles, settings_page, wake_tables
from deploy.mailserver import james
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.writes import AddRow, DeleteRow
from reconcilers.rows.confirm import Moment, judge
from reconcilers.rows.finding import Action, State
from reconcilers.rows.plan import plan
from reconcilers.rows.seen import Seen
from reconcilers.words.model import (
    Difference,
    Kind,
    Repair,
    Row,
    Slot,
    Suspect,
    Value,
    Wake,
    look_again,
)
from streaming.commands.doctor.checks import permissions as rights
from streaming.commands.doctor.checks import schema as structure
from streaming.commands.doctor.checks.check import CassandraContext
from streaming.settings import RepairSettings, Settings
from streaming.steps.look import Look
from streaming.tables import Cluster
from streaming.tables.cql import as_cql
from tests.builders.answered import ANSWERED, ANSWERED_SCHEMA, WITH_ANSWERED
from tests.builders.examining import examiner
from tests.builders.permits import permit
from tests.builders.rows import (
    DELAY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables

BOUND = WITH_ANSWERED.projections[-1]
FLAGS: Mapping[str, Value] = {"flagdeleted": False, "flagrecent": False}
ANSWERED_TRUTH = truth(FLAGS, flaguser=True)
KEY_ONLY = Row({"mailboxid": MAILBOX, "answered_uid": 7})


@dataclass
class Ground:
    """The message is listed and answered; the new table is as given."""

    rows: dict[Slot, Row] = field(default_factory=dict)
    published: list[Wake] = field(default_factory=list)
    now: int = NOW

    def __post_init__(self) -> None:
        listed = {SLOT: row(FLAGS, flaguser=True)}
        known = {"messages": listed, ANSWERED.name: self.rows}
        self.tables = MemoryTables({MESSAGE_ID: (ANSWERED_TRUTH,)}, known)
        self.journal = MemoryJournal(lambda: self.now)

    def settle(self, kind: Kind) -> list[Action]:
        self.now += DELAY + SECOND
        suspect = Suspect(SLOT, frozenset({MESSAGE_ID}), kind, ANSWERED.name, LONG_AGO)
        outcomes = examiner(
            *(WITH_ANSWERED, BOUND, self.tables, MemoryLineage(), self.journal),
            publish=self.published.extend,
            clock=lambda: self.now,
        ).examine([suspect], permit(), f"batch {self.now}")
        return [each.action for each in outcomes]


# --- look, judge, plan ---------------------------------------------------------------------------


def suspected(rows: dict[Slot, Row]) -> list[Kind | None]:
    ground = Ground(rows)
    wake = replace(look_again(SLOT, ANSWERED.name, MESSAGE_ID), looked_again=False)
    looked = Look(WITH_ANSWERED, ground.tables, MemoryLineage(), LONG_AGO).at([wake], NOW)
    return [each.kind for each in looked.suspects if each.projection == ANSWERED.name]


def test_a_look_finds_what_is_missing_there() -> None:
    assert suspected({}) == [Kind.MISSING_ROW]
    assert suspected({SLOT: KEY_ONLY}) == []


@pytest.mark.parametrize(
    ("actual", "belongs", "write"),
    [(None, True, AddRow), (KEY_ONLY, False, DeleteRow)],
    ids=["missing", "extra"],
)
def test_what_differs_is_repaired_like_in_any_index(
    actual: Row | None, belongs: bool, write: type
) -> None:
    held = truth(FLAGS, flaguser=belongs)
    seen = Seen(SLOT, actual, (held,), frozenset({MESSAGE_ID}), listed=True)
    verdict = judge(WITH_ANSWERED, BOUND, seen, Moment(NOW, DELAY))
    assert isinstance(verdict, Repair)
    (planned,) = cast(Iterable[object], plan(BOUND, seen, verdict.difference, MOMENT, 0))
    assert isinstance(planned, write)


MOMENT = Moment(NOW, DELAY)


def test_its_statements_name_its_own_column() -> None:
    seen = Seen(SLOT, None, (ANSWERED_TRUTH,), frozenset({MESSAGE_ID}), listed=True)
    (added,) = cast(tuple[AddRow], plan(BOUND, seen, Difference(Kind.MISSING_ROW), MOMENT, 0))
    cql, values = as_cql(added, "apache_james")
    assert "INTO apache_james.messageanswered (mailboxid, answered_uid)" in cql
    assert values[:2] == SLOT.key


# --- confirm, examine, repair, journal -----------------------------------------------------------


def test_its_finding_lives_in_the_journal_until_the_repair_is_seen_to_hold() -> None:
    ground = Ground()
    assert ground.settle(Kind.MISSING_ROW) == [Action.REPAIR]
    finding = ground.journal.recall(WITH_ANSWERED, ANSWERED.name, [SLOT])[SLOT]
    assert (finding.state, finding.kind) == (State.INTENDED, Kind.MISSING_ROW)
    assert finding.sentence.startswith(f"answered_uids: mailbox {MAILBOX} UID 7 is missing")
    assert [wake.projection for wake in ground.published] == [ANSWERED.name]
    ground.rows[SLOT] = KEY_ONLY
    assert ground.settle(Kind.MISSING_ROW) == [Action.CLOSE]
    assert ground.journal.recall(WITH_ANSWERED, ANSWERED.name, [SLOT]) == {}


# --- topics, rights, doctor, settings ------------------------------------------------------------


def test_its_events_are_read() -> None:
    assert ANSWERED.table in WITH_ANSWERED.wakes_on


def test_the_role_must_be_given_its_table() -> None:
    needed = rights.needed(Settings(), [WITH_ANSWERED], ANSWERED_SCHEMA)
    of_it = {each.permission for each in needed if each.table == ANSWERED.table}
    assert of_it == {"SELECT", "MODIFY"}


class Empty:
    """A cluster where nobody keeps the new table."""

    def has_rows(self, _keyspace: str, table: str) -> bool:
        return table != ANSWERED.table


def test_the_shipped_role_is_given_its_table_when_it_is_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shipped = roles.ROLES.read_text(encoding="utf-8")
    assert roles.rewritten(shipped) == shipped, "run `make docs`"
    monkeypatch.setattr(roles, "FAMILIES", (WITH_ANSWERED,))
    added = set(roles.rewritten(shipped).splitlines()) - set(shipped.splitlines())
    table = f"apache_james.{ANSWERED.table}"
    granted = {f"GRANT {each} ON TABLE {table} TO reconciler;" for each in ("SELECT", "MODIFY")}
    assert added == {f"-- {ANSWERED.name}:", *granted}


def test_doctor_looks_at_it() -> None:
    context = CassandraContext(
        Settings(), (WITH_ANSWERED,), cast(Cluster, Empty()), ANSWERED_SCHEMA
    )
    told = [str(each) for each in structure.james_tables(context)]
    assert any("messageanswered follows imapuidtable" in each for each in told)
    warned = [each.what for each in structure.optional_tables(context)]
    assert any(
        "messageanswered is empty: this installation may not keep answers" in w for w in warned
    )
    assert ANSWERED.table in context.watched


def test_what_is_declared_is_what_may_be_switched_on() -> None:
    """The setting's default, and so its page, follow from the declarations."""
    declared = {each.name for each in FAMILIES[0].projections}
    assert set(RepairSettings().projections) == declared
    assert all(name in settings_page.page() for name in declared)


# --- what the servers of the demo and of the tests capture ---------------------------------------


def test_its_changes_are_captured() -> None:
    assert ANSWERED.table in wake_tables.by([WITH_ANSWERED])


def test_every_table_that_is_declared_is_captured_and_made() -> None:
    for family in FAMILIES:
        kept = {each.table for each in family.projections}
        if not kept:
            continue  # a family of tallies, woken by what the others examine
        assert {family.truth.table, *kept} <= set(wake_tables.TABLES)
        assert {family.truth.table, *kept} <= set(james.cdc_tables()), "james.cql lacks some"
