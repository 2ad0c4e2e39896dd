"""The two tables of mailboxes against each other."""

from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.comparison.snapshot import MailboxAt, Snapshot
from deploy.mailserver.mailbox_statements import MAILBOXES


def mailbox_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every mailbox that is not registered at just the path that its own row names.

    Each is one difference, at the user of its row; without a row, at that of its path.
    """
    registered: defaultdict[UUID, set[MailboxAt]] = defaultdict(set)
    for path, mailboxid in tables.paths.items():
        registered[mailboxid].add(path)
    for mailboxid in sorted(tables.mailboxes.keys() | registered.keys()):
        named = tables.mailboxes.get(mailboxid)
        paths = registered[mailboxid]
        if paths != {named}:
            user = (named or min(paths)).user
            yield Mismatch(
                DifferenceKind.MAILBOX_CONFLICT,
                mailboxid,
                user,
                columns=(f"row {_told(named)}", *(f"path {_told(each)}" for each in sorted(paths))),
                projection=MAILBOXES,
            )


def _told(path: MailboxAt | None) -> str:
    return "/".join(path) if path else "missing"
