"""The product's screening at a fake CQL server; executors can import it."""

from __future__ import annotations

from functools import cache

from checkpoints.cassandra import CassandraTallies, Store
from checkpoints.clock import now_micros
from streaming.commands.wiring.workers import MOST_ROWS, _ByName
from streaming.counters.screening import Screening
from streaming.pipeline.screen_job import ScreenJob
from streaming.settings import Settings
from streaming.tables import CounterTables, connect
from tests.builders.screened_mail import WIDTH

UNLIMITED = 1_000_000_000


def screening_at(job: ScreenJob) -> Screening:
    """This process's screening."""
    tables, kept = _connected(job.settings, _ByName(job.family))
    return Screening(tables, kept, job.tallies, now_micros, WIDTH, 0, job.since, MOST_ROWS)


@cache
def _connected(settings: Settings, of: _ByName) -> tuple[CounterTables, CassandraTallies]:
    session = connect(settings.cassandra)
    store = Store(session, settings.cassandra.own_keyspace)
    tables = CounterTables(session, settings.cassandra, of.family, UNLIMITED)
    return tables, CassandraTallies(store, WIDTH)
