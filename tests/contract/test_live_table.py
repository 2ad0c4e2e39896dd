"""Which of two tables of quotas James writes, by the write times of real counters."""

import time
import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from deploy.mailserver import james
from reconcilers.counters import live_table
from reconcilers.counters.live_table import WRITTEN, choose, choose_again
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tally import Tally
from streaming.tables.live_tables import choice_of, sample_of, uses_of
from tests.builders.newer_james import add_newer_quotas

pytestmark = pytest.mark.stack

SHAPES = (CURRENT_QUOTA, QUOTA_CURRENT_VALUE)
ROOT = "#private&ana@example.org"


class Quotas:
    """A keyspace with both tables, and what James writes there."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self.session, self.keyspace = session, keyspace
        james.create_schema(session, keyspace)
        add_newer_quotas(session, keyspace)

    def older(self, quotaroot: str = ROOT) -> None:
        self.session.execute(
            f"UPDATE {self.keyspace}.currentquota SET messagecount = messagecount + 1,"
            " storage = storage + 9 WHERE quotaroot = %s",
            (quotaroot,),
        )

    def newer(self, component: str = "MAILBOX") -> None:
        self.session.execute(
            f"UPDATE {self.keyspace}.quotacurrentvalue SET currentvalue = currentvalue + 1"
            " WHERE identifier = %s AND quotacomponent = %s AND quotatype = %s",
            (f"{ROOT}@example.org", component, "count"),
        )

    def kept(self, session: Session) -> Tally | None:
        return choice_of(session, self.keyspace, SHAPES).kept


@pytest.fixture
def quotas(cassandra: Session) -> Iterator[Quotas]:
    made = Quotas(cassandra, f"live_{uuid.uuid4().hex[:8]}")
    yield made
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {made.keyspace}")


def test_a_sample_has_the_names_and_the_newest_time_of_each_row(
    session: Session, quotas: Quotas
) -> None:
    began = time.time_ns() // 1000
    quotas.newer()
    (row,) = sample_of(session, quotas.keyspace, QUOTA_CURRENT_VALUE)
    written = row.pop(WRITTEN)
    assert began <= written <= time.time_ns() // 1000
    assert row == {
        "identifier": f"{ROOT}@example.org",
        "quotacomponent": "MAILBOX",
        "quotatype": "count",
    }
    quotas.older()
    (row,) = sample_of(session, quotas.keyspace, CURRENT_QUOTA)
    assert row.pop(WRITTEN) >= written
    assert row == {"quotaroot": ROOT}


def test_the_older_is_kept_while_the_newer_has_no_quotas_of_mail(
    session: Session, quotas: Quotas
) -> None:
    """James's compatibility mode, before the migration."""
    assert quotas.kept(session) is None
    quotas.newer("SIEVE")
    assert quotas.kept(session) is None
    quotas.older()
    assert quotas.kept(session) == CURRENT_QUOTA


def test_of_two_that_were_written_within_an_hour_none_is_kept(
    session: Session, quotas: Quotas
) -> None:
    quotas.newer()
    quotas.older()
    assert quotas.kept(session) is None


def test_the_one_that_was_written_last_is_kept(
    session: Session, quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if hours had passed between any two writes. Names that nobody reads do not count."""
    monkeypatch.setattr(live_table, "APART", 0)
    quotas.newer()
    quotas.older()
    assert quotas.kept(session) == CURRENT_QUOTA
    quotas.newer("SIEVE")
    assert quotas.kept(session) == CURRENT_QUOTA
    quotas.newer()
    assert quotas.kept(session) == QUOTA_CURRENT_VALUE
    quotas.older(f"{ROOT}@example.org")
    assert quotas.kept(session) == QUOTA_CURRENT_VALUE


def test_what_was_written_between_two_samples_tells(session: Session, quotas: Quotas) -> None:
    quotas.newer()
    quotas.older()
    before = uses_of(session, quotas.keyspace, SHAPES)
    undecided = choose(before)
    assert choose_again(undecided, before, uses_of(session, quotas.keyspace, SHAPES)) == undecided
    quotas.older()
    now = uses_of(session, quotas.keyspace, SHAPES)
    assert choose_again(undecided, before, now).kept == CURRENT_QUOTA
