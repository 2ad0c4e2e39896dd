"""How long Cassandra keeps what is written (checkpoints/README.md), and what is no transaction."""

import inspect
import uuid

import pytest
from cassandra.cluster import Session

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraJournal,
    CassandraLineage,
    Store,
    bookmarks,
    create_schema,
    journal,
    lineage,
)
from reconcilers.rows.deletes import ProjectionDelete, RowDeletes, TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Slot
from tests.contract.making import a_family, a_finding, a_slot

DAY = 86_400


def kept(session: Session, store: Store, question: str, *values: object) -> int | None:
    """The remaining TTL (s) of a cell, None when it has none."""
    row = session.execute(question.replace("$ks", store.keyspace), values).one()
    return None if row[0] is None else int(row[0])


@pytest.mark.stack
def test_lineage_is_kept_until_both_sides_are_gone(cassandra: Session, store: Store) -> None:
    entry = Entry(uuid.uuid1(), Slot(uuid.uuid1(), 1), True, 5)
    seen = CassandraLineage(store)
    for column in ("seen", "in_truth", "recorded_at"):
        question = f"SELECT TTL({column}) FROM $ks.lineage_by_message WHERE messageid = %s"
        seen.remember([entry])
        assert kept(cassandra, store, question, entry.source) is None
        seen.expire([entry])
        assert 20 * DAY - 300 < (kept(cassandra, store, question, entry.source) or 0) <= 20 * DAY
        seen.remember([entry])
        assert kept(cassandra, store, question, entry.source) is None


@pytest.mark.stack
def test_open_findings_stay_and_their_log_lasts_for_the_undo_period(
    cassandra: Session, store: Store
) -> None:
    family = a_family()
    finding = a_finding(family, a_slot())
    CassandraJournal(store, families=(family,)).put(finding)
    here = "WHERE family = %s ALLOW FILTERING"
    state = f"SELECT TTL(state) FROM $ks.findings {here}"
    assert kept(cassandra, store, state, finding.family) is None
    log = f"SELECT TTL(finding) FROM $ks.finding_log {here}"
    assert 90 * DAY - 300 < (kept(cassandra, store, log, finding.family) or 0) <= 90 * DAY


@pytest.mark.stack
def test_what_is_settled_is_never_forgotten(cassandra: Session, store: Store) -> None:
    stream = uuid.uuid4().hex
    kept_for_now = CassandraBookmarks(store)
    bookmark = kept_for_now.record(Bookmark(stream, {("topic", 0): 1}))
    kept_for_now.name(bookmark, "before")
    where = "WHERE stream = %s ALLOW FILTERING"
    for table in ("settled_offsets", "named_bookmarks"):
        lives = f"SELECT TTL(offsets) FROM $ks.{table} {where}"
        assert kept(cassandra, store, lives, stream) is None


@pytest.mark.stack
def test_the_schema_may_be_made_again_over_what_is_there(cassandra: Session, store: Store) -> None:
    slot = Slot(uuid.uuid1(), 1)
    seen = CassandraLineage(store)
    seen.remember_deletes(
        [ProjectionDelete(slot, 5), TruthDelete(uuid.uuid1(), (uuid.uuid1(), 1), 5)]
    )
    create_schema(cassandra, store.keyspace)
    assert seen.projection_deletes(slot) == RowDeletes(frozenset({5}))


@pytest.mark.parametrize("module", [journal, lineage, bookmarks])
def test_only_the_lease_uses_lightweight_transactions(module: object) -> None:
    source = inspect.getsource(module)  # type: ignore[arg-type]
    assert "store.prepare(" in source
    assert "prepare_conditional" not in source
    assert " IF " not in source
