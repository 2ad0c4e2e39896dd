"""`reconcile doctor` on the tables of attachments: those that this James does not write."""

from typing import Any

import pytest

from reconcilers.rows.table_use import ListingUse
from streaming.commands.doctor.checks import permissions as rights
from streaming.commands.doctor.checks import schema as structure
from streaming.commands.doctor.checks.check import Level
from streaming.commands.doctor.checks.content import content_readable
from streaming.commands.doctor.checks.used_tables import used_tables
from tests.fakes.checked_cluster import EVERYTHING, JAMES, NEWER, FakeCluster, levels, looked
from tests.unit.commands.test_doctor_rights import as_listed, needed

ROWS, REFERENCES = "attachmentv2", "attachmentmessageid"
BOTH = {"tables": [ROWS, REFERENCES]}


def cluster(**there: tuple[int, int]) -> FakeCluster:
    """With so many newest rows of each table, and so many of them there."""
    return FakeCluster(uses={table: ListingUse(table, *use) for table, use in there.items()})


def told(given: FakeCluster, **sections: Any) -> list[tuple[Level, str]]:
    return [(each.level, each.what) for each in looked(used_tables, given, **sections)]


def test_a_table_that_is_named_and_not_written_is_warned_of() -> None:
    given = cluster(attachmentv2=(5, 5), attachmentmessageid=(5, 0))
    assert told(given, attachments=BOTH) == [
        (Level.OK, "attachmentv2 is written by this James"),
        (
            Level.WARNING,
            "attachmentmessageid has none of the 5 newest rows: this James does not use it;"
            " nothing is compared or written there",
        ),
    ]


def test_a_table_that_every_james_writes_and_that_lost_its_newest_rows_is_compared() -> None:
    (first, _) = told(cluster(attachmentv2=(5, 0), attachmentmessageid=(5, 5)), attachments=BOTH)
    lost = "attachmentv2 has none of the 5 newest rows, which every James writes"
    assert first == (Level.WARNING, lost)


def test_a_table_that_is_written_and_not_named_is_told() -> None:
    given = cluster(attachmentv2=(5, 4), attachmentmessageid=(5, 0))
    left = "attachmentv2 is written by this James, and not compared: see attachments.tables"
    assert told(given) == [(Level.OK, left)]


def test_where_no_message_has_attachments_nothing_is_known() -> None:
    assert told(cluster()) == []
    assert told(cluster(), attachments={"tables": [ROWS]}) == [
        (Level.OK, "no message of a sample needs a row in attachmentv2")
    ]


def test_a_table_that_may_not_be_read_is_a_problem_only_if_it_is_named() -> None:
    refusing = FakeCluster(refuses="no SELECT")
    assert told(refusing) == []
    (level, what), *_ = told(refusing, attachments=BOTH)
    assert (level, what) == (Level.PROBLEM, "no SELECT; nothing is compared or written there")


def test_a_named_table_that_the_keyspace_lacks_is_a_problem_with_its_setting() -> None:
    assert levels(looked(structure.james_tables, attachments=BOTH)) == {Level.OK}
    newer = {"tables": [ROWS]}
    assert levels(looked(structure.james_tables, schema=NEWER, attachments=newer)) == {Level.OK}
    found = looked(structure.james_tables, schema=NEWER, attachments=BOTH)
    wrong, *_ = [each for each in found if each.level is not Level.OK]
    assert wrong.level is Level.PROBLEM
    assert "attachmentmessageid does not exist" in wrong.what
    assert wrong.advice.endswith("take the table out of attachments.tables")
    assert told(cluster(), attachments=BOTH)  # of the others no less is said


@pytest.mark.parametrize("table", ["messagev3", "messagev2"])
def test_the_right_to_read_lists_is_needed_where_attachments_are_compared(table: str) -> None:
    right = rights.Right("SELECT", "apache_james", table)
    granted = as_listed(set(needed(**EVERYTHING) - {right}))
    (only,) = looked(rights.role, FakeCluster(granted=granted), **EVERYTHING)
    assert only.level is Level.PROBLEM


def test_each_table_of_content_is_read_once() -> None:
    found = [each.what for each in looked(content_readable, **EVERYTHING)]
    assert sorted(found) == sorted(set(found))
    assert "messagev3 can be read" in found


def test_owners_are_read_only_where_the_keyspace_has_them() -> None:
    owners = rights.Right("SELECT", "apache_james", "attachmentowners")
    rows = {"tables": [ROWS]}
    assert owners in needed(JAMES, attachments=rows)
    assert owners not in needed(NEWER, attachments=rows)
    assert owners not in needed(JAMES, attachments={"tables": [REFERENCES]})
