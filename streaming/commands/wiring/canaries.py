"""The table of canaries that the settings name."""

from __future__ import annotations

from streaming.settings import Settings
from streaming.tables import Canaries, connect


def canaries(settings: Settings) -> Canaries:
    """The table of canaries, with the tables whose capture the canaries stand for."""
    watched = {table for family in settings.families() for table in family.wakes_on}
    cassandra = settings.cassandra
    return Canaries(connect(cassandra), settings.canary.keyspace, cassandra.keyspace, watched)
