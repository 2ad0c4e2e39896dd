"""Rows of `mailbox` and `mailboxpathv3`, and looks at them."""

from collections.abc import Iterable
from uuid import UUID

from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides

A, B, C = (UUID(f"{number:08x}-0000-1000-8000-000000000000") for number in (1, 2, 3))
P, Q, R = (MailboxPath("#private", "ana", name) for name in ("P", "Q", "R"))
Row = MailboxRow | PathRow


def mailbox(id_: UUID, path: MailboxPath | None, written: int = 1) -> MailboxRow:
    """A row of `mailbox`; the uidvalidity is a number of the id."""
    return MailboxRow(id_, path, id_.fields[0], (written,))


def path(at: MailboxPath, id_: UUID | None, written: int = 1) -> PathRow:
    """A row of `mailboxpathv3`; its uidvalidity is 100 more than that of the mailbox."""
    return PathRow(at, id_, None if id_ is None else 100 + id_.fields[0], (written,))


def look(rows: Iterable[Row]) -> Sides:
    """A look that read these rows, and everything that they name."""
    rows = list(rows)
    ids = dict.fromkeys(row.id for row in rows if row.id is not None)
    paths = dict.fromkeys(row.path for row in rows if row.path is not None)
    return Sides(
        {**ids, **{row.id: row for row in rows if isinstance(row, MailboxRow)}},
        {**paths, **{row.path: row for row in rows if isinstance(row, PathRow)}},
    )
