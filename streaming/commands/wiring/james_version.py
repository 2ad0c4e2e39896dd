"""Which table James stores lists of rights in, by the version of its schema.

James's migration copies lists into the event store one by one, and ends at the first that fails.
James goes on with the older table until all were copied; only then it raises the version.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from reconcilers.declared.access_rights import EVENTS, JSON_LISTS
from reconcilers.declared.family import Schema
from reconcilers.words.errors import Misconfigured, Refused
from streaming.settings import Settings

log = logging.getLogger("reconciler")

VERSIONS = "schemaversion"
"""James's table of the schema versions that a keyspace has reached."""
STORED_AS_EVENTS = 10
"""The version from which on James stores lists as events."""
OLDEST = JSON_LISTS.table


class Samples(Protocol):
    """Rows of tables; `streaming.tables.Cluster` is the real one."""

    def some(self, keyspace: str, table: str, column: str) -> Sequence[Any]:
        """A column's values in some rows. Raises `Refused` if the role may not read it."""


def before_events(samples: Samples, keyspace: str, schema: Schema) -> bool:
    """Whether James still stores lists as it did before it had events of them. Raises `Refused`."""
    if VERSIONS not in schema or OLDEST not in schema:
        return False
    reached = samples.some(keyspace, VERSIONS, "value")
    return bool(reached) and max(reached) < STORED_AS_EVENTS


def refuse_unfinished_migration(settings: Settings, samples: Samples, schema: Schema) -> None:
    """Raises `Misconfigured` if the setting names events, and James does not store lists there yet.

    Rights would be made those of a copy.
    """
    if settings.rights.truth != EVENTS.table:
        return
    try:
        early = before_events(samples, settings.cassandra.keyspace, schema)
    except Refused as refused:
        log.warning("whether James stores lists of rights as events is not known: %s", refused)
        return
    if early:
        raise Misconfigured(
            f"not in repair mode: {settings.cassandra.keyspace} is below schema version"
            f" {STORED_AS_EVENTS}, so James stores lists of rights in {OLDEST}: set rights.truth ="
            f' "{OLDEST}" until its migration has ended'
        )
