"""The rows of rights against the newest event of each mailbox."""

from collections.abc import Iterator, Mapping

from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.history import NO_UID, RowKey
from deploy.mailserver.rights import LIST_RIGHTS, USER_RIGHTS, is_user


def rights_differences(tables: Snapshot) -> Iterator[Mismatch]:
    """Every row that is missing, differs or is one too many in usermailboxacl and aclv2.

    A list that cannot be read is one difference, and its rows are neither right nor wrong.
    """
    unreadable = {mailboxid for mailboxid, granted in tables.lists.items() if granted is None}
    for mailboxid in sorted(unreadable):
        yield Mismatch(DifferenceKind.UNREADABLE_LIST, mailboxid, NO_UID, projection=USER_RIGHTS)
    wanted: dict[RowKey, str] = {
        (mailboxid, name): "".join(sorted(letters))
        for mailboxid, granted in tables.lists.items()
        for name, letters in (granted or {}).items()
        if letters
    }
    of_users = {row: letters for row, letters in wanted.items() if is_user(str(row[1]))}
    for projection, rows, right in (
        (USER_RIGHTS, tables.user_rights, of_users),
        (LIST_RIGHTS, tables.list_rights, wanted),
    ):
        known = {row: letters for row, letters in rows.items() if row[0] not in unreadable}
        yield from row_differences(projection, right, known, "rights")


def row_differences(
    projection: str, wanted: Mapping[RowKey, str], rows: Mapping[RowKey, str], column: str
) -> Iterator[Mismatch]:
    """Every difference of rows with one column that is not of the key."""
    for row in sorted(wanted.keys() | rows.keys(), key=str):
        if row not in rows:
            yield Mismatch(DifferenceKind.MISSING, *row, projection=projection)
        elif row not in wanted:
            yield Mismatch(DifferenceKind.EXTRA, *row, projection=projection)
        elif rows[row] != wanted[row]:
            yield Mismatch(DifferenceKind.CELLS, *row, columns=(column,), projection=projection)
