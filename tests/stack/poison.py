"""What any user can put into one row, one mailbox or one event, and cannot be read."""

import json
import uuid

from tests.stack.scenes import Place, Scene, now_us

DATES = {
    "31-Dec-9999 23:59:59 -1200": 253_402_343_999_000,
    "01-Jan-0001 00:00:00 in Java": -62_135_769_600_000,
}
ABSURD = 2**63 - 1
TOMBSTONES = 101_000
"""More than a node reads: 100,000 (`tombstone_failure_threshold`)."""
A_ROW = 500


def bury(scene: Scene, table: str, **partition: uuid.UUID) -> None:
    """So many tombstones there: elements taken from user flags."""
    where = " AND ".join(f"{name} = ?" for name in partition)
    take = scene.prepare(f"UPDATE {table} SET userflags = userflags - ? WHERE {where} AND uid = ?")
    flags = {f"flag {number}" for number in range(A_ROW)}
    for uid in range(1, TOMBSTONES // A_ROW + 1):
        scene.session.execute(take, (flags, *partition.values(), uid))


def event(scene: Scene, place: Place, ts_ms: int) -> tuple[bytes, bytes]:
    """An insert of the truth, captured at this time."""
    source = {"ts_us": now_us(), "keyspace": scene.keyspace, "table": "imapuidtable"}
    value = {"ts_ms": ts_ms, "op": "i", "source": source, "after": {}}
    value["mark"] = str(place.messageid)  # a dead letter tells no key
    return place.event_key, json.dumps(value).encode()


def dates(scene: Scene, place: Place) -> tuple[int, int] | None:
    """Both dates that are listed, as numbers: this test's own driver could not read them."""
    read = "blobAsBigint(timestampAsBlob({0})) AS {0}".format
    row = scene.execute(
        f"SELECT {read('internaldate')}, {read('save_date')} FROM $projection"
        " WHERE mailboxid = %s AND uid = %s",
        *place.row,
    ).one()
    return None if row is None else (row.internaldate, row.save_date)
