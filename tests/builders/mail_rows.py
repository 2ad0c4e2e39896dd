"""Rows like James's, the same in every table and in lineage, as plain dictionaries."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from checkpoints.schema import STEPS
from checkpoints.schema.step import made_by, statements
from deploy.mailserver.james import schema_statements
from deploy.mailserver.mail import Message
from deploy.mailserver.mailbag import random_content, random_flags
from deploy.mailserver.mailserver import new_timeuuid, now_ms
from tests.fakes.cql_tables import FakeTable, declared

WATCHED_SINCE = 1_700_000_000_000_000
RECORDED_AT = WATCHED_SINCE + 60_000_000
MailRow = dict[str, Any]


def truth_rows(messages: int, mailboxes: int, seed: int = 1) -> list[MailRow]:
    """Rows of the truth, spread evenly, mailbox by mailbox; the ids are new at each call."""
    chance = random.Random(seed)
    found = []
    for _ in range(mailboxes):
        mailboxid = new_timeuuid()
        for uid in range(1, messages // mailboxes + 1):
            flags = random_flags(chance)
            message = Message(random_content(chance), mailboxid, uid, uid, flags, now_ms())
            row: MailRow = {**message.columns(), "userflags": set(flags.user)}
            found.append(row | {"messageid": message.messageid, "mailboxid": mailboxid, "uid": uid})
    return found


def rows_by_table(truth: list[MailRow]) -> dict[str, list[MailRow]]:
    """What the tables of James hold where all agree with these rows of the truth."""
    flags: dict[UUID, set[str]] = defaultdict(set)
    for row in truth:
        flags[row["mailboxid"]] |= row["userflags"]
    return {
        "imapuidtable": truth,
        "messageidtable": truth,
        "messagedeleted": [_key(row) for row in truth if row["flagdeleted"]],
        "firstunseen": [_key(row) for row in truth if not row["flagseen"]],
        "mailboxrecents": [
            {"mailboxid": row["mailboxid"], "recent_mesage_uid": row["uid"]}
            for row in truth
            if row["flagrecent"]
        ],
        "applicableflag": [
            {"mailboxid": mailboxid, "userflags": used} for mailboxid, used in flags.items() if used
        ],
    }


def lineage_rows(truth: list[MailRow]) -> dict[str, list[MailRow]]:
    """What our own keyspace holds when each of these rows has been looked at."""
    entries = [
        _key(row)
        | {"messageid": row["messageid"], "seen": True, "in_truth": True}
        | {"recorded_at": RECORDED_AT}
        for row in truth
    ]
    unset = dict.fromkeys(("swept_at", "listed_at", "noted_at"))
    watches = [{"name": "stream", "since": WATCHED_SINCE, "captured": "", **unset}]
    return {"lineage_by_row": entries, "lineage_by_message": entries, "watches": watches}


def _key(row: MailRow) -> MailRow:
    return {"mailboxid": row["mailboxid"], "uid": row["uid"]}


def fake_tables(keyspace: str, own: str, rows: Mapping[str, list[MailRow]]) -> Iterator[FakeTable]:
    """All tables of James and of our own keyspace for a fake server, with these rows."""
    made = declared(schema_statements(keyspace))
    added: dict[str, dict[str, str]] = defaultdict(dict)
    for step in STEPS:
        made += declared(statements(step.cql, own), {"ttl(seen)": "int"})
        for statement in statements(step.cql, own):
            table, columns = made_by(statement)
            added[table] |= columns
    for each in made:
        of_step = added.get(each.name, {}) if each.keyspace == own else {}
        whole = replace(each, columns={**each.columns, **of_step})
        yield whole.holding(rows.get(each.name, ()))
