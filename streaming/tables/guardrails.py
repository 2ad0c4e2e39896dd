"""Guardrails of Cassandra that refuse writes of the reconciler; superusers are exempt."""

from __future__ import annotations

from checkpoints.cassandra import Store
from reconcilers.words.errors import Refused

TRIAL = "DELETE FROM $ks.settled_offsets USING TIMESTAMP 1 WHERE stream = ?"
NO_STREAM = "no stream has this name: it is tried whether a write time is allowed"


def refuse_guardrails(store: Store) -> None:
    """Raises `Refused` if Cassandra refuses writes with a timestamp, or with an old one.

    Repairs, journal and settled offsets need them. The trial deletes a row that does not exist.
    Raises `Retryable` without an answer.
    """
    try:
        store.run("trying a write with a write time", [(store.prepare(TRIAL), (NO_STREAM,))])
    except Refused as refused:
        if "timestamp" not in str(refused):
            raise
        raise Refused(
            f"{refused}: set user_timestamps_enabled: true and no minimum_timestamp_fail_threshold"
            " in each node's cassandra.yaml (deploy/runbook.md, *Guardrails*)"
        ) from refused
