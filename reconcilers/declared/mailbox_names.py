"""S2: the path that each mailbox names, from its row in `mailbox`. Pure.

``mailboxbase`` is of a user-defined type and is read as JSON. A row that lacks a part of its path
names none: it has no truth row, and `reconcile mailboxes` reports it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from reconcilers.declared.truth import Derivation, Derived, TruthTable
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Row, Value

PATH = ("user", "namespace", "mailboxname")
"""The columns of a path, as `mailboxpathv3` names them."""


def of_mailbox(source: KeyValue, stored: Sequence[Row]) -> Derived:
    """The path of a mailbox, as the only truth row; none if a part is missing."""
    found = ((row, _parts(row)) for row in stored)
    return tuple(_row(source, row, parts) for row, parts in found if parts is not None)


def _parts(row: Row) -> tuple[str, str, str] | None:
    text, name = row.get("mailboxbase"), row.get("name")
    base = json.loads(text) if isinstance(text, str) else None
    if not isinstance(base, dict) or not isinstance(name, str):
        return None
    user, namespace = base.get("user"), base.get("namespace")
    if not namespace or not name:
        return None
    return str(user or ""), str(namespace), name


def _row(source: KeyValue, stored: Row, parts: tuple[str, str, str]) -> Row:
    cells: dict[str, Value] = {"id": source, "mailboxid": source}
    at = stored.written.get("name")
    written = {} if at is None else {"mailboxid": at}
    return Row({**cells, **dict(zip(PATH, parts, strict=True))}, written)


MAILBOX_NAMES = TruthTable(
    table="mailbox",
    source=KeyColumn("id", "timeuuid", "mailbox"),
    slot=PATH,
    derive=Derivation(
        key=(),
        reads=("mailboxbase", "name"),
        gives=("mailboxid",),
        rows=of_mailbox,
        as_json=frozenset({"mailboxbase"}),
    ),
)
"""The path that each mailbox names, by its id."""
