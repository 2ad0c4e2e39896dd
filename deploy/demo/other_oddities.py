"""Oddities beside messages, planted by hand: rights in a mailbox, and a mailbox without a row."""

from deploy.demo.planter import Planter, now_us
from deploy.mailserver.ledger import MAILBOX_CONFLICT, VERIFIED
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import USER_RIGHTS


def plant_others(planter: Planter) -> None:
    """What is repaired, one of each difference, and a mailbox that is reported."""
    plant_rights(planter)
    mailbox_conflict(planter)


def plant_rights(planter: Planter) -> None:
    """One of each difference between a list of rights and the rows of its users."""
    missing_right(planter)
    differing_right(planter)
    stale_right(planter)


def missing_right(planter: Planter) -> None:
    """A user does not see a mailbox that is shared with them."""
    user = _friend("missing", planter)
    planter.server.share(planter.mailboxid, user, "lr")
    _hide(planter, user)
    _note(planter, "missing_right", user)


def differing_right(planter: Planter) -> None:
    """A user may do less than the list grants."""
    user = _friend("differing", planter)
    planter.server.share(planter.mailboxid, user, "lrw")
    _show(planter, user, "l")
    _note(planter, "differing_right", user)


def stale_right(planter: Planter) -> None:
    """A user still sees a mailbox of which the right was taken away."""
    user = _friend("stale", planter)
    planter.server.share(planter.mailboxid, user, "lr")
    planter.server.share(planter.mailboxid, user, "")
    _show(planter, user, "lr")
    _note(planter, "stale_right", user)


def mailbox_conflict(planter: Planter) -> None:
    """The path of a mailbox was written, and the mailbox itself was lost.

    Its user has no other: whose messages it holds is in doubt, and so is that user's quota.
    """
    user = _friend("halfway", planter)
    mailboxid = planter.server.create_mailbox(user, "half-created")
    planter.execute(f"DELETE FROM {planter.keyspace}.mailbox WHERE id = ?", mailboxid)
    planter.note_place("orphan_path", (MAILBOXES, (mailboxid, user)), MAILBOX_CONFLICT)


def _friend(name: str, planter: Planter) -> str:
    return f"{name}-{planter.user}"


def _hide(planter: Planter, user: str) -> None:
    planter.execute(
        f"DELETE FROM {planter.keyspace}.usermailboxacl USING TIMESTAMP ?"
        " WHERE username = ? AND mailboxid = ?",
        now_us(),
        user,
        planter.mailboxid,
    )


def _show(planter: Planter, user: str, rights: str) -> None:
    planter.execute(
        f"INSERT INTO {planter.keyspace}.usermailboxacl (username, mailboxid, rights)"
        " VALUES (?, ?, ?) USING TIMESTAMP ?",
        user,
        planter.mailboxid,
        rights,
        now_us(),
    )


def _note(planter: Planter, kind: str, user: str) -> None:
    planter.note_place(kind, (USER_RIGHTS, (planter.mailboxid, user)), VERIFIED)
