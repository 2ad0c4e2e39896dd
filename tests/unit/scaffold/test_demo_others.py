"""The demo's rights and mailboxes: what is planted, what is judged, what must not pass."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from deploy.comparison.differences import differences
from deploy.comparison.messages import DifferenceKind
from deploy.comparison.snapshot import Snapshot, read_whole
from deploy.demo.conflicts import conflict_lines, report_conflicts
from deploy.demo.other_oddities import plant_others
from deploy.demo.planter import Planter
from deploy.demo.verdict import Exhibits, Line, judged
from deploy.mailserver.attachments import REFERENCES, id_as_uuid
from deploy.mailserver.history import RowKey
from deploy.mailserver.ledger import MAILBOX_CONFLICT, VERIFIED, Ledger
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import USER_RIGHTS
from reconcilers.words.exit_codes import ExitCode
from tests.fakes.memory_cassandra import KEYSPACE, MemoryCassandra


@dataclass
class Planted:
    """The oddities on tables in memory, and what a reconciler would say of them."""

    ledger: Ledger = field(default_factory=Ledger)
    session: Any = field(default_factory=MemoryCassandra)
    planter: Planter = field(init=False)

    def __post_init__(self) -> None:
        self.planter = Planter(self.session, KEYSPACE, self.ledger)
        plant_others(self.planter)

    def tables(self) -> Snapshot:
        return read_whole(self.session, KEYSPACE)

    def rows(self, projection: str) -> list[RowKey]:
        entries = [each for each in self.ledger.entries() if each.projection == projection]
        return [row for entry in entries for row in entry.rows]

    def repair(self) -> list[Line]:
        """Do to rights and references what the lists say, and journal it."""
        tables = self.tables()
        granted = tables.lists[self.planter.mailboxid] or {}
        users = [str(user) for _, user in self.rows(USER_RIGHTS)]
        for user in users:
            for letters in ("l", "", granted.get(user, "")):
                self.planter.server.share(self.planter.mailboxid, user, letters)
        named = {id_as_uuid(each): each for some in tables.contents.values() for each in some}
        references = self.rows(REFERENCES)
        table, where = f"{KEYSPACE}.attachmentmessageid", "attachmentidasuuid = ? AND messageid = ?"
        for row in references:
            self.planter.execute(f"DELETE FROM {table} WHERE {where}", *row)
            if attachmentid := named.get(row[0]):
                cql = f"UPDATE {table} SET attachmentid = ? WHERE {where}"
                self.planter.execute(cql, attachmentid, *row)
        mailbox = str(self.planter.mailboxid)
        return [
            finding(USER_RIGHTS, VERIFIED, mailboxid=mailbox, username=user) for user in users
        ] + [
            finding(REFERENCES, VERIFIED, attachmentidasuuid=str(first), message=second)
            for first, second in references
        ]

    def conflicts(self) -> list[Line]:
        tables = self.tables()
        [(path, mailboxid)] = [
            (path, each) for path, each in tables.paths.items() if each not in tables.mailboxes
        ]
        row = {**path._asdict(), "mailboxid": str(mailboxid)}
        told = {"kind": "orphan_path", "outcome": "reported", "mailbox": [], "mailboxpathv3": [row]}
        return list(conflict_lines([told]))

    def exhibits(self, log: Sequence[Line], standing: Sequence[Line]) -> Exhibits:
        wrong = list(differences(self.tables()))
        return Exhibits(self.ledger.entries(), log, standing, wrong)


def finding(projection: str, state: str, kind: str = "any", **key: Any) -> Line:
    return {"projection": projection, **key, "kind": kind, "state": state, "sentence": "so it is"}


@pytest.fixture
def planted() -> Planted:
    return Planted()


def test_each_oddity_is_a_difference_of_its_kind(planted: Planted) -> None:
    found = {each.place: each.kind for each in differences(planted.tables())}
    kinds = {
        entry.kind: found.pop(place) for entry in planted.ledger.entries() for place in entry.places
    }
    assert found == {}
    assert kinds == {
        "missing_right": DifferenceKind.MISSING,
        "differing_right": DifferenceKind.CELLS,
        "stale_right": DifferenceKind.EXTRA,
        "missing_reference": DifferenceKind.MISSING,
        "differing_reference": DifferenceKind.CELLS,
        "stale_reference": DifferenceKind.EXTRA,
        "orphan_path": DifferenceKind.MAILBOX_CONFLICT,
    }


def test_all_is_fine_if_rights_are_repaired_and_the_conflict_is_reported(planted: Planted) -> None:
    verdict = judged(planted.exhibits(planted.repair(), planted.conflicts()))
    assert verdict.problems == []
    assert [ending for _, ending in verdict.endings] == [VERIFIED] * 6 + [MAILBOX_CONFLICT]


def test_a_right_that_is_not_repaired_is_named(planted: Planted) -> None:
    problems = judged(planted.exhibits([], planted.conflicts())).problems
    assert len([each for each in problems if "the tables differ: user_rights" in each]) == 3
    assert len([each for each in problems if f"the tables differ: {REFERENCES}" in each]) == 3


def test_a_right_that_nobody_saw_repaired_is_named(planted: Planted) -> None:
    log = planted.repair()
    problems = judged(planted.exhibits(log[1:], planted.conflicts())).problems
    assert len(problems) == 1
    assert "missing_right on planted" in problems[0]


def test_a_conflict_that_is_not_reported_is_named(planted: Planted) -> None:
    problems = judged(planted.exhibits(planted.repair(), [])).problems
    assert any("the tables differ: mailboxes" in each for each in problems)


def test_a_conflict_that_nobody_planted_is_named(planted: Planted) -> None:
    log = planted.repair()
    mailboxid, user = str(planted.planter.mailboxid), planted.planter.user
    key = {"mailboxid": mailboxid, "username": user}
    other = finding(MAILBOXES, "reported", MAILBOX_CONFLICT, **key)
    [problem] = judged(planted.exhibits(log, [*planted.conflicts(), other])).problems
    assert f"mailboxes {mailboxid}/{user}" in problem


def test_a_conflict_that_was_repaired_is_named(planted: Planted) -> None:
    log, conflicts = planted.repair(), planted.conflicts()
    mailboxid = uuid.UUID(conflicts[0]["mailboxid"])
    planted.planter.execute(
        f"INSERT INTO {KEYSPACE}.mailbox (id, mailboxbase, name, uidvalidity) VALUES (?, ?, ?, ?)",
        mailboxid,
        ("#private", conflicts[0]["username"]),
        "half-created",
        1,
    )
    [problem] = judged(planted.exhibits(log, conflicts)).problems
    assert "is reported as mailbox_conflict, but both tables agree" in problem


@dataclass
class Told:
    """A screen, and a stream whose command reports one conflict."""

    said: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def command(self, *words: str, ends_with: ExitCode) -> list[str]:
        assert (words, ends_with) == (("mailboxes", "--format", "jsonl"), ExitCode.PROBLEMS)
        row = {"mailboxid": "b1", "user": "ana"}
        told = {"kind": "orphan_path", "outcome": "reported", "mailbox": [], "mailboxpathv3": [row]}
        return [json.dumps(told)]


def test_what_the_command_reports_is_said() -> None:
    told: Any = Told()
    [line] = report_conflicts(told, told)
    assert line["sentence"] == "orphan_path of mailbox b1 of ana: reported"
    assert told.said[-1] == f"  {line['sentence']}"
