"""Step 2: open findings by their family's own key, as text, instead of by mailbox and UID.

Copies ``open_findings`` to ``findings``; the old table stays as it is, so that the product before
this step can still read and write the keyspace (what it finds from then on is not seen here). A
counter's finding had to stand at a mailbox with UID 0, or at an id made from a quota root's name,
and that of a whole table at an id of zeros: now the first two stand at their own keys, and the last
at none. What is logged keeps the columns of old, unused. Needs no stream to be running.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from checkpoints.schema.step import RowStore, SchemaStep
from reconcilers.words.key import text_of
from reconcilers.words.model import Slot

CQL = """
-- One row for each open finding; no TTL: it stays until it is closed. key = the slot as operators
-- type it; bucket = hash of the key, 16 of them, so that listing is 16 reads. A closed finding that
-- comes back because a node missed its tombstone is closed again by its next look, so tombstones
-- need to last only as long as hints do.
CREATE TABLE IF NOT EXISTS $ks.findings (
    family text,
    bucket int,
    projection text,
    key text,
    source text,
    kind text,
    state text,
    sentence text,
    attempts int,
    tried_at bigint,
    last_batch text,
    found_at bigint,
    oldest bigint,
    next_look bigint,
    accepted boolean,
    before_image text,
    writes text,
    truth text,
    PRIMARY KEY ((family, bucket), projection, key)
) WITH gc_grace_seconds = 10800
   AND compaction = {'class': 'LeveledCompactionStrategy'};

ALTER TABLE $ks.finding_log ADD IF NOT EXISTS key text;
"""

BUCKETS = 16
AS_THEY_ARE = (
    "kind, state, sentence, attempts, tried_at, last_batch, found_at, oldest, next_look, accepted,"
    " before_image, truth"
)
"""Columns that did not change."""
NO_MAILBOX = UUID(int=0)


def copy(store: RowStore) -> None:
    """Every open finding, with the write time that it had."""
    read = store.prepare(
        "SELECT family, projection, mailboxid, uid, messageid, writes, writetime(state),"
        f" {AS_THEY_ARE} FROM $ks.open_findings"
    )
    write = store.prepare(
        f"INSERT INTO $ks.findings (family, bucket, projection, key, source, writes, {AS_THEY_ARE})"
        f" VALUES ({', '.join('?' * 18)}) USING TIMESTAMP ?"
    )
    found = store.rows("reading the findings of old", read)
    requests = ((write, values) for row in found for values in taken_over(row))
    store.run("copying findings", requests)


def taken_over(row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """What is written for a row of old: nothing where nobody knows what it was about.

    A row without a state is what is left of one that was closed while it was written.
    """
    family, projection, mailboxid, uid, messageid, writes, at, *others = row
    slot = _slot(family, mailboxid, uid, messageid)
    if slot is None or at is None:
        return
    key, source = text_of(slot), messageid if family == "message" else None
    bucket = zlib.crc32(key.encode()) % BUCKETS
    yield family, bucket, projection, key, source, _writes(family, slot, writes), *others, at


def _slot(family: str, mailboxid: UUID, uid: int, messageid: str | None) -> Slot | None:
    if (mailboxid, uid) == (NO_MAILBOX, 0):
        return Slot()
    match family:
        case "mailbox_tally":
            return Slot(mailboxid)
        case "user_tally":
            return None if messageid is None else Slot(messageid)
        case _:
            return Slot(mailboxid, uid)


def _writes(family: str, slot: Slot, text: str | None) -> str | None:
    """The writes of a counter's finding, at its own key."""
    column = {"mailbox_tally": "mailboxid", "user_tally": "quotaroot"}.get(family)
    if column is None or not text:
        return text
    writes = json.loads(text)
    for write in writes:
        del write["mailboxid"], write["uid"]
        write[column] = str(slot.key[0])
    return json.dumps(writes, separators=(",", ":"))


STEP = SchemaStep(2, "findings by their own key", CQL, copy)
