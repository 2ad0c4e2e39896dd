"""S4: the attachments that a message refers to, derived from the list with its content. Pure.

James stores the list in the column ``attachments`` of `messagev3`, and before that of `messagev2`.
It is read as JSON. Each attachment has a text id; the other tables use the UUID that follows from
it. James cannot load a message if one of its attachments has no id; such a list is `Malformed` as a
whole. An element that stands there twice is one attachment: an append that was sent again prepends
its list again. Names and content ids may be missing, and are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import md5
from uuid import UUID

from reconcilers.declared.conversion import Conversion
from reconcilers.declared.truth import Derivation, Derived, Malformed, Owner, TruthTable
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Row, Value

WRITTEN_WITH_LIST = "fullcontentoctets"
"""A column that James writes in the same statement; its write time stands for the list's."""


class _CannotLoad(ValueError):
    """A list that James cannot load; the message says why."""


def id_as_uuid(attachment_id: str) -> UUID:
    """The UUID of an attachment's text id: name-based, version 3, without a namespace.

    It equals Java's ``UUID.nameUUIDFromBytes`` of the text in UTF-8. Raises ValueError if the text
    has no UTF-8 form.
    """
    return UUID(bytes=md5(attachment_id.encode(), usedforsecurity=False).digest(), version=3)


def of_list(source: KeyValue, stored: Sequence[Row]) -> Derived:
    """The attachments of a message, in the order of its list."""
    found: dict[UUID, Row] = {}
    for row in stored:
        try:
            for attachment_id, uuid in _listed(row.get("attachments")):
                found.setdefault(uuid, _row(source, attachment_id, uuid, row))
        except _CannotLoad as fault:
            return Malformed(f"attachments of {source}: {fault}")
    return tuple(found.values())


def _row(source: KeyValue, attachment_id: str, uuid: UUID, stored: Row) -> Row:
    """One attachment, under the names of each table that refers to it."""
    cells: dict[str, Value] = {
        "messageid": source,
        "message": str(source),
        "attachmentidasuuid": uuid,
        "idasuuid": uuid,
        WRITTEN_WITH_LIST: stored.get(WRITTEN_WITH_LIST),
    }
    copied: dict[str, Value] = {
        "attachmentid": attachment_id,
        "id": attachment_id,
        "message_id": source,
    }
    at = stored.written.get(WRITTEN_WITH_LIST)
    return Row({**cells, **copied}, {} if at is None else dict.fromkeys(copied, at))


def _listed(text: Value) -> Iterator[tuple[str, UUID]]:
    for each in _elements(text):
        attachment_id = each.get("id") if isinstance(each, dict) else None
        if not isinstance(attachment_id, str) or not attachment_id:
            raise _CannotLoad("an attachment has no id")
        try:
            yield attachment_id, id_as_uuid(attachment_id)
        except UnicodeEncodeError as fault:
            raise _CannotLoad("an id is not text") from fault


def _elements(text: Value) -> Sequence[object]:
    if text is None:
        return ()
    try:
        told = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as fault:
        raise _CannotLoad("it is not JSON") from fault
    if not isinstance(told, list | None):
        raise _CannotLoad("it is not a JSON list")
    return told or ()


def _as_text(cell: Value) -> Value:
    return None if cell is None else str(cell)


def _as_uuid(cell: Value) -> Value:
    """The UUID of a text, None if the text is not how James writes one."""
    try:
        uuid = UUID(str(cell))
    except ValueError:
        return None
    return uuid if str(uuid) == cell else None


ID_AS_TEXT = Conversion(forth=_as_text, back=_as_uuid)
"""A message id: a UUID in the truth, its text in the projection."""

MESSAGE_LISTS = TruthTable(
    table="messagev3",
    source=KeyColumn("messageid", "timeuuid", "message"),
    slot=("attachmentidasuuid", "message"),
    required=(WRITTEN_WITH_LIST,),
    derive=Derivation(
        key=(),
        reads=("attachments", WRITTEN_WITH_LIST),
        gives=("attachmentid", "id", "message_id", WRITTEN_WITH_LIST),
        rows=of_list,
        as_json=frozenset({"attachments"}),
        listed_in=("attachments",),
    ),
    older=("messagev2",),
    contents=("messagev2", "messagev3"),
    owner=Owner("imapuidtable", "messageid", "place in a mailbox"),
)
"""The list of each message, in one cell beside its content."""
