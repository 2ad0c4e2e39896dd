"""Attachments of a message: their rows, and how older versions of James refer to them. Pure.

As in James 3.8.1 and, for the older shape, 3.6.2: `CassandraAttachmentDAOV2`,
`CassandraAttachmentMessageIdDAO`, `CassandraAttachmentMapper`.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import md5
from uuid import UUID

from deploy.mailserver.history import ProjectionWrite, Statement
from deploy.mailserver.mail import Attachment

REFERENCES = "attachment_references"
"""The projection of `attachmentmessageid`, by the name that the reconciler gives it."""


class Shape(StrEnum):
    """Which tables an attachment is written to, besides the list of its message."""

    SINCE_3_7 = "since 3.7"
    """`attachmentv2`, with the id of the message."""
    UNTIL_3_6 = "until 3.6"
    """`attachmentv2` without that id, and `attachmentmessageid`."""


def id_as_uuid(attachmentid: str) -> UUID:
    """The text id as a key, as Java's `UUID.nameUUIDFromBytes` makes it."""
    return UUID(bytes=md5(attachmentid.encode(), usedforsecurity=False).digest(), version=3)


def row_statement(
    attachment: Attachment, messageid: UUID, shape: Shape, keyspace: str
) -> tuple[str, list[object]]:
    """The INSERT into attachmentv2, and its values; the older shape does not name the message."""
    columns = {
        "idasuuid": id_as_uuid(attachment.id),
        "id": attachment.id,
        "blobid": f"blob-{attachment.id}",
        "type": attachment.type,
        "message_id": messageid,
        "size": attachment.size,
    }
    if shape is Shape.UNTIL_3_6:
        del columns["message_id"]
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    return f"INSERT INTO {keyspace}.attachmentv2 ({names}) VALUES ({marks})", [*columns.values()]


def listed(attachments: Iterable[Attachment]) -> list[tuple[object, ...]]:
    """The list in messagev3: values of the type `attachments`, in the order of its fields."""
    return [(each.id, each.name, each.cid, each.inline) for each in attachments]


def reference_write(statement: Statement, messageid: UUID, attachmentid: str) -> ProjectionWrite:
    """The reference from an attachment to its message, inserted or deleted."""
    new = statement is Statement.INSERT
    return ProjectionWrite(
        statement=statement,
        operation="append" if new else "expunge",
        messageid=messageid,
        mailboxid=id_as_uuid(attachmentid),
        uid=str(messageid),
        cells={"attachmentid": attachmentid} if new else {},
        projection=REFERENCES,
    )


def reference_statement(
    write: ProjectionWrite, keyspace: str, timestamp_us: int
) -> tuple[str, list[object]]:
    """The CQL of a write to attachmentmessageid, and its values."""
    table = f"{keyspace}.attachmentmessageid"
    if write.statement is Statement.DELETE:
        cql = (
            f"DELETE FROM {table} USING TIMESTAMP ? WHERE attachmentidasuuid = ? AND messageid = ?"
        )
        return cql, [timestamp_us, *write.row]
    cql = (
        f"INSERT INTO {table} (attachmentidasuuid, attachmentid, messageid) "
        "VALUES (?, ?, ?) USING TIMESTAMP ?"
    )
    return cql, [write.mailboxid, write.cells["attachmentid"], write.uid, timestamp_us]
