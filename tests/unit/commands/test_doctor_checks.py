"""The checks of `reconcile doctor`, each against a cluster that is wrong in one way."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from checkpoints.schema.upgrade import upgrade
from reconcilers.words.errors import OtherSchema
from streaming.commands.doctor.checks import capture
from streaming.commands.doctor.checks import schema as structure
from streaming.commands.doctor.checks.check import Level
from streaming.commands.doctor.command import unread_segments
from tests.fakes.checked_cluster import (
    EVERYTHING,
    JAMES,
    NETWORK,
    NEWER,
    ONE_PLACE,
    FakeCluster,
    levels,
    looked,
)
from tests.fakes.schema_store import MemorySchemaStore

# --- structure ----------------------------------------------------------------------------------


def test_james_tables_are_there() -> None:
    assert levels(looked(structure.james_tables)) == {Level.OK}


@pytest.mark.parametrize("table", ["imapuidtable", "messageidtable"])
def test_a_missing_table_or_key_is_a_problem(table: str) -> None:
    without = {name: columns for name, columns in JAMES.items() if name != table}
    assert Level.PROBLEM in levels(looked(structure.james_tables, schema=without))
    keyless = {**JAMES, table: {"modseq": "bigint"}}
    assert Level.PROBLEM in levels(looked(structure.james_tables, schema=keyless))


def test_a_tally_is_told_with_the_table_that_it_is_kept_in() -> None:
    newer = EVERYTHING | {"attachments": {"tables": ["attachmentv2"]}}
    for schema, table, sections in (
        (JAMES, "currentquota", EVERYTHING),
        (NEWER, "quotacurrentvalue", newer),
    ):
        found = looked(structure.james_tables, schema=schema, **sections)
        assert levels(found) == {Level.OK}
        assert f"current_quota is kept in {table}" in [check.what for check in found]
        assert "mailbox_counters is kept in mailboxcounters" in [check.what for check in found]


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("current_quota", "no currentquota and no quotacurrentvalue"),
        ("mailbox_counters", "no mailboxcounters"),
    ],
)
def test_a_tally_without_any_table_is_warned_of(name: str, absent: str) -> None:
    tables = {"currentquota", "quotacurrentvalue", "mailboxcounters"}
    without = {table: columns for table, columns in JAMES.items() if table not in tables}
    found = looked(structure.james_tables, schema=without, tally={"projections": [name]})
    (warned,) = [check for check in found if check.level is not Level.OK]
    assert warned.level is Level.WARNING
    assert f"{name} is switched on, but the keyspace has {absent}: it is left out" in warned.what
    assert levels(looked(structure.james_tables, schema=without)) == {Level.OK}


def test_a_table_that_a_tally_reads_must_be_there() -> None:
    without = {table: columns for table, columns in JAMES.items() if table != "mailboxpathv3"}
    found = looked(structure.james_tables, schema=without, **{**EVERYTHING, "mailboxes": {}})
    (wrong,) = [check for check in found if check.level is not Level.OK]
    assert wrong.level is Level.PROBLEM
    assert "mailboxpathv3" in wrong.what


def test_recents_that_nobody_keeps_are_warned_of() -> None:
    repair = {"projections": ["recent_uids"]}
    none, nothing = (
        FakeCluster(empty=frozenset(tables))
        for tables in ({"mailboxrecents"}, {"mailboxrecents", "messageidtable"})
    )
    assert levels(looked(structure.optional_tables, repair=repair)) == {Level.OK}
    (warned,) = looked(structure.optional_tables, none, repair=repair)
    assert warned.level is Level.WARNING
    assert "may not keep recents" in warned.what
    assert "recent_uids" in warned.advice
    assert looked(structure.optional_tables, nothing, repair=repair) == []
    assert looked(structure.optional_tables, none) == []


def test_a_missing_keyspace_is_one_problem() -> None:
    (only,) = looked(structure.james_tables, schema={})
    assert "there is no keyspace apache_james" in str(only)


def test_what_our_own_keyspace_lacks_is_a_problem_with_its_cql() -> None:
    cluster = FakeCluster()
    assert levels(looked(structure.own_keyspace, cluster)) == {Level.OK}
    del cluster.own.schema["findings"]["accepted"]
    (only,) = looked(structure.own_keyspace, cluster)
    assert only.level is Level.PROBLEM
    assert "column findings.accepted" in only.what
    (added,) = only.cql
    assert added == "ALTER TABLE reconciler.findings ADD IF NOT EXISTS accepted set<text>"
    del cluster.own.schema["lease"]
    (only,) = looked(structure.own_keyspace, cluster)
    assert "keyspace reconciler lacks" in only.what
    assert "table lease" in only.what
    assert any("CREATE TABLE IF NOT EXISTS reconciler.lease" in each for each in only.cql)


@pytest.mark.parametrize(
    ("james", "ours", "level"),
    [
        (ONE_PLACE, ONE_PLACE, Level.OK),
        (ONE_PLACE, {"class": "SimpleStrategy", "replication_factor": "3"}, Level.OK),
        (ONE_PLACE, {"class": NETWORK, "paris": "1"}, Level.PROBLEM),
        (ONE_PLACE, {"class": "SimpleStrategy", "replication_factor": "1"}, Level.PROBLEM),
        ({"class": "SimpleStrategy", "replication_factor": "1"}, ONE_PLACE, Level.OK),
        ({"class": NETWORK, "paris": "3/1"}, {"class": NETWORK, "paris": "2"}, Level.PROBLEM),
    ],
)
def test_fewer_copies_of_ours_than_of_james_are_a_problem(
    james: dict[str, str], ours: dict[str, str], level: Level
) -> None:
    cluster = FakeCluster(replicated={"apache_james": james, "reconciler": ours})
    found = looked(structure.copies_and_levels, cluster)
    assert levels([each for each in found if "copies" in each.what]) == {level}


BOTH = {"class": NETWORK, "paris": "3", "rome": "3"}
EVERYWHERE = {"class": "SimpleStrategy", "replication_factor": "3"}
JAMES_OWN = {"consistency": "LOCAL_QUORUM", "serial_consistency": "LOCAL_SERIAL"}


@pytest.mark.parametrize(
    ("james", "set_to", "problem"),
    [
        (ONE_PLACE, {}, False),
        (BOTH, {}, True),
        (EVERYWHERE, {}, True),
        (BOTH, {"consistency": "QUORUM"}, True),
        (BOTH, {"local_dc": "paris"}, True),
        (BOTH, JAMES_OWN, False),
        (BOTH, {"consistency": "QUORUM", "serial_consistency": "SERIAL"}, False),
        ({"class": NETWORK, "paris": "3", "rome": "0"}, {}, False),
    ],
)
def test_where_james_is_in_several_data_centres_his_levels_must_be_set(
    james: dict[str, str], set_to: dict[str, str], *, problem: bool
) -> None:
    cluster = FakeCluster(replicated={"apache_james": james, "reconciler": BOTH})
    found = looked(structure.copies_and_levels, cluster, cassandra=set_to)
    told = [each for each in found if "several data centres (paris, rome)" in each.what]
    assert bool(told) is problem
    assert all("cassandra.serial_consistency" in each.what for each in told)


def test_a_step_that_is_not_finished_is_a_problem_that_fix_finishes() -> None:
    cluster = FakeCluster(own=MemorySchemaStore("reconciler"))
    (only,) = looked(structure.own_keyspace, cluster)
    assert only.level is Level.PROBLEM
    assert "lacks step 1 (the tables of the first release)" in only.what
    assert only.own_keyspace
    assert only.cql[0].startswith("CREATE KEYSPACE IF NOT EXISTS reconciler")
    upgrade(cluster.own)
    assert levels(looked(structure.own_keyspace, cluster)) == {Level.OK}


@pytest.mark.parametrize(
    ("step", "name", "said"),
    [
        (1_000, "what we do not know", "is at version 1000"),
        (1, "the first tables", "run DROP KEYSPACE reconciler"),
    ],
    ids=["newer", "of an older shape"],
)
def test_a_keyspace_of_another_version_is_not_checked(step: int, name: str, said: str) -> None:
    cluster = FakeCluster()
    cluster.own.records[step] = name
    with pytest.raises(OtherSchema, match=said):
        looked(structure.own_keyspace, cluster)


@pytest.mark.parametrize(("ahead", "level"), [(22.4, Level.OK), (-22.6, Level.PROBLEM)])
def test_clocks_may_differ_by_half_the_delay(ahead: float, level: Level) -> None:
    assert levels(looked(structure.clocks, FakeCluster(ahead={"n": ahead}))) == {level}


# --- capture ------------------------------------------------------------------------------------


def test_a_table_without_cdc_is_a_problem_with_its_cql() -> None:
    on, off = looked(capture.cdc_on, FakeCluster(captured=frozenset({"messageidtable"})))
    assert (on.level, off.level) == (Level.OK, Level.PROBLEM)
    assert off.cql == (
        "ALTER TABLE apache_james.imapuidtable WITH cdc = true AND gc_grace_seconds = 864001",
        "ALTER TABLE apache_james.imapuidtable WITH gc_grace_seconds = 864000",
    )


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("cdc_enabled", "false", Level.PROBLEM),
        ("cdc_block_writes", "true", Level.WARNING),
        ("cdc_on_repair_enabled", "true", Level.WARNING),
        ("cdc_on_repair_enabled", "false", Level.OK),
    ],
)
def test_settings_of_a_node(name: str, value: str, level: Level) -> None:
    cluster = FakeCluster()
    cluster.told[name] = value
    assert levels(looked(capture.node_settings, cluster)) == {level}


def test_settings_that_may_not_be_read_are_a_warning() -> None:
    found = looked(capture.node_settings, FakeCluster(refuses="no SELECT"))
    assert levels(found) == {Level.WARNING}


@pytest.mark.parametrize(("size", "level"), [(400, Level.OK), (600, Level.PROBLEM)])
def test_a_full_cdc_raw_is_a_problem(size: int, level: Level, tmp_path: Path) -> None:
    (tmp_path / "CommitLog-7-1.log").write_bytes(bytes(size))
    cluster = FakeCluster()
    cluster.told |= {"cdc_total_space": "1KiB", "cdc_raw_directory": str(tmp_path)}
    assert looked(capture.node_settings, cluster)[-1].level is level


def test_segments_that_the_agent_has_still_to_read(tmp_path: Path) -> None:
    assert unread_segments(tmp_path) == []
    for number, text in ((1, "9"), (2, "9\nCOMPLETED"), (3, "9")):
        (tmp_path / f"CommitLog-7-{number}.log").touch()
        (tmp_path / f"CommitLog-7-{number}_cdc.idx").write_text(text)
    (tmp_path / "CommitLog-7-4.log").touch()  # made ahead, nothing in it yet
    assert unread_segments(tmp_path) == ["CommitLog-7-1_cdc.idx", "CommitLog-7-2_cdc.idx"]
    (tmp_path / "CommitLog-7-3_cdc.idx").write_text("9\nCOMPLETED")
    assert "CommitLog-7-3_cdc.idx" in unread_segments(tmp_path)


@pytest.fixture
def agent() -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
    """An address, and the answers that it gives (the last one again and again)."""
    answers: list[tuple[int, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[-1]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "level"),
    [
        (200, b'{"cassandra": {"healthy": true}}', Level.OK),
        (200, b'{"cassandra": {"healthy": false}}', Level.PROBLEM),
        (500, b'{"cassandra": {"healthy": false}}', Level.PROBLEM),
        (200, b"<html>", Level.PROBLEM),
        (200, b"[1]", Level.PROBLEM),
        (200, b'{"cassandra": 1}', Level.PROBLEM),
    ],
)
def test_an_agent_that_is_not_well(
    status: int, body: bytes, level: Level, agent: tuple[str, list[tuple[int, bytes]]]
) -> None:
    address, answers = agent
    answers.append((status, body))
    (only,) = looked(capture.agents, agent={"http": [address]})
    assert only.level is level


def test_an_agent_that_is_gone_and_nodes_without_one() -> None:
    nodes = FakeCluster(ahead={"10.0.0.1": 0, "10.0.0.2": 0})
    gone, fewer = looked(capture.agents, nodes, agent={"http": ["http://127.0.0.1:1"]})
    assert (gone.level, fewer.level) == (Level.PROBLEM, Level.WARNING)
    assert levels(looked(capture.agents)) == {Level.WARNING}
    assert levels(looked(capture.agents, agent={"http": ["agent:8000"]})) == {Level.PROBLEM}
