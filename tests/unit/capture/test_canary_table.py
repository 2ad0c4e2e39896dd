"""One topic for all tables, and the table of canaries, which comes in it."""

from __future__ import annotations

from reconcilers.capture.frontier import CANARY_TABLE
from streaming.tables import canary_schema


def test_the_table_of_canaries_has_one_name() -> None:
    _, made = canary_schema.statements("canaries")
    assert made.startswith(f"CREATE TABLE IF NOT EXISTS canaries.{CANARY_TABLE} (")


def test_a_canary_is_on_one_node_however_many_data_centres_there_are() -> None:
    """Any other strategy puts a copy into each, whose agent would answer for the wrong node."""
    keyspace, _ = canary_schema.statements("canaries")
    assert "{'class': 'SimpleStrategy', 'replication_factor': 1}" in keyspace
