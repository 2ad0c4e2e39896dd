"""Mailboxes with one changed chunk each, and their counters, for a fake CQL server.

Executors can import it: they do not have the rest of the project.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID, uuid1

Row = dict[str, Any]
COUNTED_AT, MARKED_AT = 1_700_000_000_000_000, 1_700_000_060_000_000
WIDTH = 1_000


def screened_mail(
    mailboxes: int, messages: int, wrong: int
) -> tuple[list[UUID], dict[str, list[Row]]]:
    """The mailboxes, the first ``wrong`` of which have a wrong counter, and the rows by table."""
    chance, ids = random.Random(1), [uuid1() for _ in range(mailboxes)]
    listing: list[Row] = [
        {
            "mailboxid": mailboxid,
            "uid": uid,
            "messageid": uuid1(),
            "flagseen": chance.random() < 0.5,
            "fullcontentoctets": chance.randrange(100_000),
        }
        for mailboxid in ids
        for uid in range(1, messages + 1)
    ]
    unseen = dict.fromkeys(ids, 0)
    for row in listing:
        unseen[row["mailboxid"]] += not row["flagseen"]
    counters: list[Row] = [
        {"mailboxid": each, "count": messages + (number < wrong), "unseen": unseen[each]}
        for number, each in enumerate(ids)
    ]
    counted = {"width": WIDTH, "counted_at": COUNTED_AT, "messages": 0, "unseen": 0, "size": 0}
    chunks: list[Row] = [
        {**counted, "mailboxid": each, "chunk": chunk, "marked_at": marked}
        for each in ids
        for chunk, marked in ((-1, None), (0, MARKED_AT))
    ]
    return ids, {"messageidtable": listing, "mailboxcounters": counters, "tallies": chunks}
