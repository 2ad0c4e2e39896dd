"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.canaries import Canaries as Canaries
from streaming.tables.cluster import Cluster as Cluster
from streaming.tables.cluster import logged_in as logged_in
from streaming.tables.collected_flags import CollectedFlags as CollectedFlags
from streaming.tables.contents import ContentTables as ContentTables
from streaming.tables.counters import CounterTables as CounterTables
from streaming.tables.moved_nodes import watch_addresses as watch_addresses
from streaming.tables.nodes import Nodes as Nodes
from streaming.tables.owners import MailboxOwners as MailboxOwners
from streaming.tables.recent_writes import RecentWrites as RecentWrites
from streaming.tables.scans import UndecodedScans as UndecodedScans
from streaming.tables.session import connect as connect
from streaming.tables.session import disconnect as disconnect
from streaming.tables.session import levels_of as levels_of
from streaming.tables.session import open_session as open_session
from streaming.tables.session import schema_of as schema_of
from streaming.tables.session import store_of as store_of
from streaming.tables.table_uses import use_of as use_of
from streaming.tables.tables import Tables as Tables
from streaming.tables.undecoded_tables import UndecodedTables as UndecodedTables
