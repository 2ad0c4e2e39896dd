"""Attachments: a message's list, and the rows that refer to it."""

from __future__ import annotations

import json
from uuid import UUID

from reconcilers.declared.attachments import WRITTEN_WITH_LIST, id_as_uuid
from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.family import Family, Projection, Schema, bind
from reconcilers.words.model import KeyValue, Micros, Row, Slot, Value
from tests.builders.rows import LONG_AGO

LIST = "list<frozen<attachments>>"
CONTENT = {"messageid": "timeuuid", "attachments": LIST, WRITTEN_WITH_LIST: "bigint"}
SCHEMA: Schema = {
    "messagev2": CONTENT,
    "messagev3": CONTENT,
    "attachmentmessageid": {
        "attachmentidasuuid": "uuid",
        "messageid": "text",
        "attachmentid": "text",
    },
    "attachmentowners": {"id": "uuid", "owner": "text"},
    "attachmentv2": {
        "idasuuid": "uuid",
        "id": "text",
        "blobid": "text",
        "type": "text",
        "message_id": "timeuuid",
        "size": "bigint",
    },
}
REFERENCES: Family = bind(ATTACHMENT_REFERENCE, SCHEMA)
LISTING: Projection = REFERENCES.listing
ATTACHMENTS: Family = bind(ATTACHMENT, SCHEMA)
ROWS: Projection = ATTACHMENTS.listing

MESSAGE = UUID("11111111-0000-1000-8000-000000000001")
OTHER = UUID("22222222-0000-1000-8000-000000000002")
PDF, PNG = "ghkocfvxtbfkbtgqysfd", "zzzzzzzzzzzzzzzzzzzz"


def content(*ids: str, at: Micros = LONG_AGO) -> Row:
    """The stored row of a message with these attachments."""
    listed = json.dumps([{"id": each, "name": None, "isinline": False} for each in ids])
    cells: dict[str, Value] = {"attachments": listed if ids else None, WRITTEN_WITH_LIST: 100}
    return Row(cells, {WRITTEN_WITH_LIST: at})


def reference_place(attachment: str = PDF, message: KeyValue = MESSAGE) -> Slot:
    """Where an attachment's reference to a message stands."""
    return Slot(id_as_uuid(attachment), str(message))


def reference(attachment: str = PDF, message: KeyValue = MESSAGE, at: Micros = LONG_AGO) -> Row:
    """The row of that reference."""
    uuid, named = reference_place(attachment, message).key
    cells: dict[str, Value] = {"attachmentidasuuid": uuid, "messageid": named}
    return Row({**cells, "attachmentid": attachment}, {"attachmentid": at})


def place(attachment: str = PDF) -> Slot:
    """Where an attachment stands."""
    return Slot(id_as_uuid(attachment))


def attachment(
    name: str = PDF, message: KeyValue | None = MESSAGE, blob: str | None = "blob"
) -> Row:
    """The row of an attachment, in one INSERT; without those cells that are None."""
    cells: dict[str, Value] = {"id": name, "blobid": blob, "message_id": message}
    written = {column: LONG_AGO for column, cell in cells.items() if cell is not None}
    return Row({"idasuuid": id_as_uuid(name), **cells}, written)
