"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.canaries import Canaries
from streaming.tables.cluster import Cluster, logged_in
from streaming.tables.collected_flags import CollectedFlags
from streaming.tables.contents import ContentTables
from streaming.tables.counters import CounterTables
from streaming.tables.moved import watch_addresses
from streaming.tables.nodes import Nodes
from streaming.tables.owners import MailboxOwners
from streaming.tables.scans import UndecodedScans
from streaming.tables.session import connect, disconnect, levels_of, open_session, schema_of
from streaming.tables.tables import Tables
from streaming.tables.undecoded import UndecodedTables

__all__ = [
    "Canaries",
    "Cluster",
    "CollectedFlags",
    "ContentTables",
    "CounterTables",
    "MailboxOwners",
    "Nodes",
    "Tables",
    "UndecodedScans",
    "UndecodedTables",
    "connect",
    "disconnect",
    "levels_of",
    "logged_in",
    "open_session",
    "schema_of",
    "watch_addresses",
]
