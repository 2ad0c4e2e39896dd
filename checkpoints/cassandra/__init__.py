"""The implementations of the ports in `checkpoints` on Cassandra.

::

    store = Store(session, keyspace="reconciler", consistency=levels("QUORUM", "SERIAL"))
    journal, lineage = CassandraJournal(store), CassandraLineage(store)

Use one `Store` in each process. It shares the caller's session, and is as thread-safe as that.
"""

from checkpoints.cassandra.bookmarks import CassandraBookmarks as CassandraBookmarks
from checkpoints.cassandra.expiries import CassandraExpiries as CassandraExpiries
from checkpoints.cassandra.failing_slices import CassandraFailingSlices as CassandraFailingSlices
from checkpoints.cassandra.generations import CassandraGenerations as CassandraGenerations
from checkpoints.cassandra.holds import CassandraHolds as CassandraHolds
from checkpoints.cassandra.journal import CassandraJournal as CassandraJournal
from checkpoints.cassandra.lease import CassandraLease as CassandraLease
from checkpoints.cassandra.lineage import CassandraLineage as CassandraLineage
from checkpoints.cassandra.losses import CassandraLosses as CassandraLosses
from checkpoints.cassandra.lost_rows import CassandraLostRows as CassandraLostRows
from checkpoints.cassandra.owner import CassandraOwner as CassandraOwner
from checkpoints.cassandra.pauses import CassandraPauses as CassandraPauses
from checkpoints.cassandra.raw_lineage import CassandraRawLineage as CassandraRawLineage
from checkpoints.cassandra.raw_select import RawReads as RawReads
from checkpoints.cassandra.schema import create_schema as create_schema
from checkpoints.cassandra.store import KEYSPACE as KEYSPACE
from checkpoints.cassandra.store import Levels as Levels
from checkpoints.cassandra.store import Store as Store
from checkpoints.cassandra.store import levels as levels
from checkpoints.cassandra.sweeps import CassandraSweeps as CassandraSweeps
from checkpoints.cassandra.tallies import CassandraRounds as CassandraRounds
from checkpoints.cassandra.tallies import CassandraTallies as CassandraTallies
