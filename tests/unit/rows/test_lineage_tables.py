"""The statements about our own tables of memory, as they are made of a family's key."""

from __future__ import annotations

from dataclasses import replace

from checkpoints.lineage_tables import LineageTables, equal, marks, names
from checkpoints.schema.step import statements
from reconcilers.declared.families.message import MESSAGE
from tests.builders.rights import RIGHTS

NINETY_DAYS = 7_776_000


def test_a_label_of_several_words_is_one_name_in_small_letters() -> None:
    source = replace(RIGHTS.truth.source, label="Access control list")
    family = replace(RIGHTS, truth=replace(RIGHTS.truth, source=source))
    assert LineageTables(family).by_source == "lineage_by_access_control_list_listed"


def test_deletes_are_kept_for_ninety_days_and_all_else_until_it_is_forgotten() -> None:
    tables = LineageTables(MESSAGE)
    of_deletes = {tables.truth_deletes, tables.projection_deletes, tables.group_deletes}
    for statement in statements(tables.cql, "mine"):
        *_, last = statement.splitlines()
        name = statement.split()[5].removeprefix("mine.")
        kept = f") WITH default_time_to_live = {NINETY_DAYS}" if name in of_deletes else ")"
        assert last == kept, name


def test_each_table_has_the_key_by_which_it_is_read() -> None:
    keys = {}
    for statement in statements(LineageTables(MESSAGE).cql, "mine"):
        (line,) = (each for each in statement.splitlines() if "PRIMARY KEY" in each)
        keys[statement.split()[5].removeprefix("mine.")] = line.strip()
    assert keys == {
        "lineage_by_message": "PRIMARY KEY (messageid, mailboxid, uid)",
        "lineage_by_row": "PRIMARY KEY (mailboxid, uid, messageid)",
        "truth_deletes": "PRIMARY KEY ((messageid, mailboxid), uid, deleted_at)",
        "projection_deletes": "PRIMARY KEY ((mailboxid, uid), deleted_at)",
        "mailbox_deletes": "PRIMARY KEY (mailboxid, deleted_at)",
        "expiries": "PRIMARY KEY (minute, due, mailboxid, uid)",
    }


def test_a_key_is_listed_compared_and_marked_column_by_column() -> None:
    assert names(MESSAGE.key) == "mailboxid, uid"
    assert equal(MESSAGE.key) == "mailboxid = ? AND uid = ?"
    assert equal(MESSAGE.key[:1]) == "mailboxid = ?"
    assert marks(MESSAGE.key) == "?, ?"
