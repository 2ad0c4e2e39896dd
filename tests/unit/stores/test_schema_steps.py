"""The steps of our own keyspace: order, records, a death at any point, a newer schema, rights."""

import copy
import pkgutil
import re
from collections.abc import Callable
from importlib import metadata

import pytest

from checkpoints import schema
from checkpoints.schema import STEPS
from checkpoints.schema.step import RowStore, SchemaStep, key_of, made_by, statements
from checkpoints.schema.upgrade import RECORDS, gap_of, product_version, read_gap, upgrade
from reconcilers.declared.family import Schema
from reconcilers.words.errors import AlreadyRunning, Misconfigured, OtherSchema, Refused
from tests.fakes.schema_store import Killed, MemorySchemaStore


def copy_old(store: RowStore) -> None:
    """Each row by itself, so that a death between two is possible."""
    read = store.prepare("SELECT key, value, WRITETIME(value) FROM $ks.old")
    write = store.prepare("INSERT INTO $ks.new (key, value) VALUES (?, ?) USING TIMESTAMP ?")
    for key, value, at in store.rows("reading the old rows", read):
        store.run("copying", [(write, (key, value, at))])


def table(name: str, *columns: str) -> str:
    lines = "".join(f"    {column},\n" for column in ("key text", *columns))
    return f"CREATE TABLE IF NOT EXISTS $ks.{name} (\n{lines}    PRIMARY KEY (key)\n);\n"


LEASE = table("lease", "holder text", "host text")
FIRST = SchemaStep(1, "the old tables", table("old", "value text") + LEASE)
SECOND = SchemaStep(2, "rows by a new key", table("new", "value text"), copy_old)
THIRD = SchemaStep(
    3, "what it's for", "ALTER TABLE $ks.new ADD IF NOT EXISTS why text;\n" + table("last")
)
THREE = (FIRST, SECOND, THIRD)


def unrecorded() -> MemorySchemaStore:
    """The first tables with rows and no record, as of a process that was killed before it."""
    store = MemorySchemaStore()
    for statement in statements(FIRST.cql, store.keyspace):
        store.change(statement)
    for number in range(3):
        store.write("old", f"key {number}", f"value {number}", 100 + number)
    store.log.clear()
    return store


def test_the_steps_run_in_order_and_each_is_recorded_when_it_is_done() -> None:
    store = MemorySchemaStore()
    upgrade(store, steps=THREE)
    kinds = [" ".join(line.split()[:3]) for line in store.log]
    made, recorded = "CREATE TABLE IF", "INSERT INTO mine.schema_steps"
    third = ["ALTER TABLE mine.new", made, recorded]
    assert kinds == ["CREATE KEYSPACE IF", made, made, made, recorded, made, recorded, *third]
    assert store.records == {step.number: step.name for step in THREE}
    assert set(store.schema) == {"schema_steps", "old", "new", "lease", "last"}
    assert store.schema["new"] == {"key": "text", "value": "text", "why": "text"}


def test_a_finished_keyspace_is_only_read() -> None:
    store = MemorySchemaStore()
    upgrade(store, steps=THREE)
    store.log.clear()
    upgrade(store, steps=THREE)
    assert store.log == []
    assert read_gap(store, steps=THREE).todo == ()


def test_tables_without_a_record_are_not_made_again_and_keep_their_rows() -> None:
    store = unrecorded()
    upgrade(store, steps=THREE)
    assert store.records.keys() == {1, 2, 3}
    assert store.cells["new"] == store.cells["old"] != {}
    assert not [line for line in store.log if ".old" in line and line.startswith("CREATE")]


@pytest.mark.parametrize("begin", [MemorySchemaStore, unrecorded])
def test_killed_anywhere_and_run_again_it_ends_the_same(
    begin: Callable[[], MemorySchemaStore],
) -> None:
    whole = begin()
    upgrade(whole, steps=THREE)
    cuts = len(whole.log)
    assert cuts > 8
    for cut in range(cuts):
        store = begin()
        store.changes_left = cut
        with pytest.raises(Killed):
            upgrade(store, steps=THREE)
        finished = sorted(store.records)
        assert finished == list(range(1, len(finished) + 1)), "a step is recorded before its turn"
        if 2 in finished:
            assert store.cells["new"] == store.cells["old"]
        store.changes_left = None
        upgrade(store, steps=THREE)
        assert store.end() == whole.end(), f"killed before change {cut}"


def test_two_processes_at_once_do_each_other_no_harm() -> None:
    store = unrecorded()
    slow = copy.deepcopy(read_gap(store, steps=THREE))
    upgrade(store, steps=THREE)
    end = copy.deepcopy(store.end())
    store.write("new", "key 1", "written since", 1_000)
    for action in slow.todo:
        if isinstance(action, str):
            store.change(action)
        elif action.copy is not None:
            action.copy(store)
    assert store.cells["new"].pop("key 1") == ("written since", 1_000)
    store.write("new", "key 1", "value 1", 101)
    assert store.end() == end


def test_rows_are_not_copied_beside_a_live_stream() -> None:
    store = unrecorded()
    store.leases = [("mail/repair", "host:1", None), ("mail/repair", "host:2", "a stream")]
    with pytest.raises(AlreadyRunning, match="a live stream on host host:2 holds the lease mail"):
        upgrade(store, steps=THREE)
    assert store.records.keys() == {1}
    assert not store.cells["new"]
    store.leases = [("mail/repair", "host:1", None)]
    upgrade(store, steps=THREE)
    assert store.records.keys() == {1, 2, 3}


def test_what_copies_nothing_is_done_beside_a_live_stream() -> None:
    store = unrecorded()
    store.leases = [("mail/repair", "host:2", "a stream")]
    upgrade(store, steps=(FIRST,))
    assert store.records.keys() == {1}


def test_a_newer_schema_is_refused_in_one_line_and_nothing_is_changed() -> None:
    store = MemorySchemaStore()
    upgrade(store, steps=THREE)
    store.log.clear()
    with pytest.raises(OtherSchema) as refused:
        upgrade(store, steps=THREE[:2])
    assert isinstance(refused.value, Misconfigured)
    assert str(refused.value) == (
        f"keyspace mine is at version 3, this product ({product_version()}) knows versions up to 2:"
        " use the product that upgraded it, or a newer one; there is no way back"
    )
    assert store.log == []


OTHER_KEY = {"old": {"number": "int", "value": "text"}}


@pytest.mark.parametrize(
    ("schema", "records", "shows"),
    [
        ({}, {1: "the first tables"}, "step 1 (the first tables)"),
        ({}, {number: f"step {number}" for number in range(1, 16)}, "step 1 (step 1)"),
        (OTHER_KEY, {}, "table old"),
        (OTHER_KEY, {1: FIRST.name}, "table old"),
    ],
)
def test_a_keyspace_of_an_older_shape_is_refused_in_one_line_and_nothing_is_changed(
    schema: Schema, records: dict[int, str], shows: str
) -> None:
    store = MemorySchemaStore()
    upgrade(store, steps=())
    store.schema |= schema
    store.records |= records
    store.log.clear()
    with pytest.raises(OtherSchema) as refused:
        upgrade(store, steps=THREE)
    assert str(refused.value) == (
        f"keyspace mine was made by a version before the first release, as its {shows} shows: back"
        " up what you need of it, run DROP KEYSPACE mine, then start `reconcile stream`"
        " (deploy/runbook.md, *Restore our keyspace*)"
    )
    assert store.log == []


def test_without_the_right_to_create_nothing_is_recorded() -> None:
    store = unrecorded()
    store.may_create = False
    with pytest.raises(Refused):
        upgrade(store, steps=THREE)
    assert store.records == {}


def test_where_an_admin_has_made_the_tables_the_role_copies_and_records() -> None:
    store = unrecorded()
    todo = read_gap(store, steps=THREE)
    assert todo.copies == (SECOND,)
    assert todo.cql[-1].startswith("CREATE TABLE IF NOT EXISTS mine.new"), "no further than rows"
    for statement in todo.cql:
        store.change(statement)
    store.may_create = False
    with pytest.raises(Refused):
        upgrade(store, steps=THREE)
    assert store.records.keys() == {1, 2}
    store.may_create = True
    for statement in read_gap(store, steps=THREE).cql:
        store.change(statement)
    assert read_gap(store, steps=THREE).todo == ()


def test_what_somebody_dropped_is_named_and_made_again() -> None:
    store = unrecorded()
    upgrade(store, steps=THREE)
    end = copy.deepcopy(store.schema)
    del store.schema["old"]
    del store.schema["new"]["value"]
    gap = read_gap(store, steps=THREE)
    assert gap.what == ("table old", "column new.value")
    assert gap.cql[-1] == "ALTER TABLE mine.new ADD IF NOT EXISTS value text"
    upgrade(store, steps=THREE)
    assert store.schema == end
    del store.schema["schema_steps"]["product"]
    assert read_gap(store, steps=THREE).what == ("column schema_steps.product",)


def test_replication_and_names_are_quoted() -> None:
    odd = SchemaStep(1, "it's", "")
    create, *_, record = gap_of("mine", {"class": "it's", "paris": "3"}, {}, {}, (odd,)).cql
    assert create == (
        "CREATE KEYSPACE IF NOT EXISTS mine WITH replication = {'class': 'it''s', 'paris': '3'}"
    )
    assert record == (
        "INSERT INTO mine.schema_steps (sequence, number, name, finished_at, product)"
        f" VALUES ('own', 1, 'it''s', toTimestamp(now()), '{product_version()}')"
    )


def test_a_column_that_two_steps_add_is_added_once() -> None:
    added = "ALTER TABLE $ks.new ADD IF NOT EXISTS why text;\n"
    twice = (SchemaStep(1, "one", table("new") + added), SchemaStep(2, "other", added))
    todo = gap_of("mine", {}, {}, {}, twice).todo
    assert sum(str(each).startswith("ALTER TABLE mine.new") for each in todo) == 1


def test_what_is_done_is_told_in_one_line_each() -> None:
    store, told = MemorySchemaStore(), list[str]()
    upgrade(store, told=told.append, steps=THREE)
    statements_run = [" ".join(line.split()) for line in store.log]
    copied = "step 2 (rows by a new key): rows copied"
    assert [line for line in told if line != copied] == statements_run
    assert told[told.index(copied) - 1].startswith("CREATE TABLE IF NOT EXISTS mine.new (")
    assert told[told.index(copied) + 1].startswith("INSERT INTO mine.schema_steps ")


def test_a_step_copies_nothing_unless_it_says_so() -> None:
    assert SchemaStep(1, "one", "") == SchemaStep(1, "one", "", copy=None)


def test_the_version_is_that_of_the_installed_product(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return "7.7"

    installed = {"james-reconciler"}
    monkeypatch.setattr("checkpoints.schema.upgrade.metadata.version", version)
    assert product_version() == "7.7"
    installed.clear()
    assert product_version() == "not installed"


# --- the steps of this product ------------------------------------------------------------------


def test_the_steps_are_numbered_without_a_gap_and_each_file_is_listed() -> None:
    assert [step.number for step in STEPS] == list(range(1, len(STEPS) + 1))
    files = [each.name for each in pkgutil.iter_modules(schema.__path__)]
    numbered = [name for name in files if re.fullmatch(r"step_\d{3}", name)]
    assert numbered == [f"step_{step.number:03}" for step in STEPS]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_statement_may_be_run_again_and_names_its_columns(step: SchemaStep) -> None:
    for statement in statements(step.cql, "mine"):
        made, columns = made_by(statement)
        assert made
        assert columns, f"no columns found in {statement}"
        assert "$" not in statement


@pytest.mark.parametrize(
    "cql", ["DROP TABLE $ks.lease;", "CREATE TABLE $ks.x (key text);", "TRUNCATE $ks.lease;"]
)
def test_a_statement_that_is_not_of_the_two_kinds_is_no_statement_of_a_step(cql: str) -> None:
    with pytest.raises(ValueError, match="not a statement of a step"):
        gap_of("mine", {}, {}, {}, (SchemaStep(1, "wrong", cql),))


def test_a_column_s_type_may_have_several_words() -> None:
    columns = {"key": "text", "cells": "frozen<map<text, bigint>>", "n_X": "text"}
    columns["last"] = "customX"
    kept = table("kept", "cells frozen<map<text, bigint>>", "n_X text", "last customX")
    made = kept.replace("$ks", "mine")
    assert made_by(made) == ("kept", columns)
    added = "ALTER TABLE mine.kept ADD IF NOT EXISTS cells map<text, bigint>"
    assert made_by(added) == ("kept", {"cells": "map<text, bigint>"})


def test_a_primary_key_has_the_columns_of_its_partition_and_its_rows() -> None:
    created = (
        "CREATE TABLE IF NOT EXISTS mine.kept (\n    a text,\n    PRIMARY KEY ((a, b), c_d)\n)"
    )
    assert key_of(f"{created} WITH default_time_to_live = 5") == {"a", "b", "c_d"}
    assert key_of("ALTER TABLE mine.kept ADD IF NOT EXISTS why text") == frozenset()


def test_the_records_are_a_table_of_their_own() -> None:
    (only,) = statements(RECORDS, "mine")
    assert made_by(only)[0] == "schema_steps"
    assert only.startswith("CREATE TABLE IF NOT EXISTS mine.schema_steps (")
