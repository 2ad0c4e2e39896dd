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


def with_quotas(
    ids: list[UUID], rows: dict[str, list[Row]], of_a_user: int, changed: int
) -> list[UUID]:
    """Give so many mailboxes to each user, with a right quota; returns those that have changed.

    Of each user's mailboxes the first ``changed`` have. The chunks of the others are counted.
    """
    sums = {each: {"messages": 0, "unseen": 0, "size": 0} for each in ids}
    for row in rows["messageidtable"]:
        its = sums[row["mailboxid"]]
        its["messages"] += 1
        its["unseen"] += not row["flagseen"]
        its["size"] += row["fullcontentoctets"]
    still = {each for number, each in enumerate(ids) if number % of_a_user >= changed}
    for chunk in rows["tallies"]:
        if chunk["chunk"] == 0 and chunk["mailboxid"] in still:
            chunk.update(sums[chunk["mailboxid"]], marked_at=None)
    for name in ("mailbox", "mailboxpathv3", "currentquota"):
        rows[name] = []
    for first in range(0, len(ids), of_a_user):
        theirs, owner = ids[first : first + of_a_user], _owner(first)
        for number, each in enumerate(theirs):
            path = {**owner, "mailboxname": f"box {number}", "mailboxid": each}
            rows["mailboxpathv3"].append(path)
            rows["mailbox"].append({"id": each, "mailboxbase": owner})
        total = {name: sum(sums[each][name] for each in theirs) for name in ("messages", "size")}
        root = f"{owner['namespace']}&{owner['user']}"
        quota = {"messagecount": total["messages"], "storage": total["size"], "quotaroot": root}
        rows["currentquota"].append(quota)
    return [each for each in ids if each not in still]


def _owner(number: int) -> dict[str, str]:
    return {"namespace": "#private", "user": f"user{number}@example.org"}
