"""Mailbox objects as the stream's family has them: a mailbox's own row, and that of its path."""

from __future__ import annotations

import json
from uuid import UUID

from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.declared.family import Family, Projection, Schema, bind
from reconcilers.words.model import Micros, Row, Slot, Value
from tests.builders.rows import LONG_AGO

SCHEMA: Schema = {
    "mailbox": {
        "id": "timeuuid",
        "mailboxbase": "frozen<mailbox_base>",
        "name": "text",
        "uidvalidity": "bigint",
    },
    "mailboxpathv3": {
        "namespace": "text",
        "user": "text",
        "mailboxname": "text",
        "mailboxid": "timeuuid",
        "uidvalidity": "bigint",
    },
}
MAILBOXES: Family = bind(MAILBOX, SCHEMA)
PATHS: Projection = MAILBOXES.listing
A, B, C = (UUID(f"{number:08x}-0000-1000-8000-000000000000") for number in (1, 2, 3))
USER, NAMESPACE = "ana@example.com", "#private"


def place(name: str) -> Slot:
    """The slot of a path."""
    return Slot(USER, NAMESPACE, name)


def stored(name: str | None, at: Micros = LONG_AGO, base: Value = None) -> Row:
    """The row of `mailbox` that names this path."""
    path = json.dumps({"namespace": NAMESPACE, "user": USER}) if base is None else base
    return Row({"mailboxbase": path, "name": name}, {"name": at})


def registered(name: str, mailbox: UUID | None, at: Micros = LONG_AGO) -> Row:
    """The row of `mailboxpathv3`."""
    key = dict(zip(PATHS.key, place(name).key, strict=True))
    return Row({**key, "mailboxid": mailbox}, {"mailboxid": at})
