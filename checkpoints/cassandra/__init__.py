"""The implementations of the ports in `checkpoints` on Cassandra.

::

    store = Store(session, keyspace="reconciler", consistency=levels("QUORUM", "SERIAL"))
    journal, lineage = CassandraJournal(store), CassandraLineage(store)

Use one `Store` in each process. It shares the caller's session, and is as thread-safe as that.
"""

from checkpoints.cassandra.bookmarks import CassandraBookmarks
from checkpoints.cassandra.expiries import CassandraExpiries
from checkpoints.cassandra.failing import CassandraFailingSlices
from checkpoints.cassandra.generations import CassandraGenerations
from checkpoints.cassandra.holds import CassandraHolds
from checkpoints.cassandra.journal import CassandraJournal
from checkpoints.cassandra.lease import CassandraLease
from checkpoints.cassandra.lineage import CassandraLineage
from checkpoints.cassandra.losses import CassandraLosses
from checkpoints.cassandra.lost_rows import CassandraLostRows
from checkpoints.cassandra.owner import CassandraOwner
from checkpoints.cassandra.pauses import CassandraPauses
from checkpoints.cassandra.raw_lineage import CassandraRawLineage
from checkpoints.cassandra.raw_select import RawReads
from checkpoints.cassandra.schema import create_schema
from checkpoints.cassandra.store import KEYSPACE, Levels, Store, levels
from checkpoints.cassandra.sweeps import CassandraSweeps
from checkpoints.cassandra.tallies import CassandraRounds, CassandraTallies

__all__ = [
    "KEYSPACE",
    "CassandraBookmarks",
    "CassandraExpiries",
    "CassandraFailingSlices",
    "CassandraGenerations",
    "CassandraHolds",
    "CassandraJournal",
    "CassandraLease",
    "CassandraLineage",
    "CassandraLosses",
    "CassandraLostRows",
    "CassandraOwner",
    "CassandraPauses",
    "CassandraRawLineage",
    "CassandraRounds",
    "CassandraSweeps",
    "CassandraTallies",
    "Levels",
    "RawReads",
    "Store",
    "create_schema",
    "levels",
]
