"""The references from attachments to their messages, against the messages' own lists."""

from collections.abc import Iterator

from deploy.comparison.messages import Mismatch
from deploy.comparison.rights import row_differences
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.attachments import REFERENCES, id_as_uuid
from deploy.mailserver.history import RowKey


def reference_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every reference that is missing, names another attachment, or is one too many.

    James 3.7 and later write none: an empty table has no difference.
    """
    if not tables.references:
        return
    wanted: dict[RowKey, str] = {
        (id_as_uuid(attachmentid), str(messageid)): attachmentid
        for messageid, attachmentids in tables.contents.items()
        for attachmentid in attachmentids
    }
    yield from row_differences(REFERENCES, wanted, tables.references, "attachmentid")
