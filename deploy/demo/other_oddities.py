"""Oddities beside messages, planted by hand: rights, references of attachments, a mailbox."""

from uuid import UUID

from deploy.demo.planter import Planter, now_us
from deploy.mailserver.attachments import REFERENCES, id_as_uuid
from deploy.mailserver.ledger import MAILBOX_CONFLICT, VERIFIED
from deploy.mailserver.mail import Attachment
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import USER_RIGHTS


def plant_others(planter: Planter) -> None:
    """What is repaired, one of each difference, and a mailbox that is reported."""
    plant_rights(planter)
    missing_reference(planter)
    differing_reference(planter)
    stale_reference(planter)
    mailbox_conflict(planter)


def plant_rights(planter: Planter) -> None:
    """One of each difference between a list of rights and the rows of its users."""
    missing_right(planter)
    differing_right(planter)
    stale_right(planter)


def missing_right(planter: Planter) -> None:
    """A user does not see a mailbox that is shared with them."""
    user = _unique("missing", planter)
    planter.server.share(planter.mailboxid, user, "lr")
    _hide(planter, user)
    _note(planter, "missing_right", user)


def differing_right(planter: Planter) -> None:
    """A user may do less than the list grants."""
    user = _unique("differing", planter)
    planter.server.share(planter.mailboxid, user, "lrw")
    _show(planter, user, "l")
    _note(planter, "differing_right", user)


def stale_right(planter: Planter) -> None:
    """A user still sees a mailbox of which the right was taken away."""
    user = _unique("stale", planter)
    planter.server.share(planter.mailboxid, user, "lr")
    planter.server.share(planter.mailboxid, user, "")
    _show(planter, user, "lr")
    _note(planter, "stale_right", user)


def missing_reference(planter: Planter) -> None:
    """An attachment does not lead to the message that names it."""
    attachmentid, messageid = attached(planter, "missing")
    planter.execute(
        f"DELETE FROM {planter.keyspace}.attachmentmessageid USING TIMESTAMP ?"
        " WHERE attachmentidasuuid = ? AND messageid = ?",
        now_us(),
        id_as_uuid(attachmentid),
        str(messageid),
    )
    _note_reference(planter, "missing_reference", attachmentid, messageid)


def differing_reference(planter: Planter) -> None:
    """A reference has the text id of another attachment."""
    attachmentid, messageid = attached(planter, "differing")
    _refer(planter, attachmentid, messageid, "another")
    _note_reference(planter, "differing_reference", attachmentid, messageid)


def stale_reference(planter: Planter) -> None:
    """A reference leads to a message that does not name the attachment."""
    _, messageid = attached(planter, "named")
    attachmentid = _unique("stale", planter)
    _refer(planter, attachmentid, messageid, attachmentid)
    _note_reference(planter, "stale_reference", attachmentid, messageid)


def attached(planter: Planter, name: str) -> tuple[str, UUID]:
    """The ids of a new attachment and of its message."""
    attachment = Attachment(_unique(name, planter), "text/plain", 7)
    return attachment.id, planter.message(attachment).messageid


def mailbox_conflict(planter: Planter) -> None:
    """The path of a mailbox was written, and the mailbox itself was lost.

    Its user has no other: whose messages it holds is in doubt, and so is that user's quota.
    """
    user = _unique("halfway", planter)
    mailboxid = planter.server.create_mailbox(user, "half-created")
    planter.execute(f"DELETE FROM {planter.keyspace}.mailbox WHERE id = ?", mailboxid)
    planter.note_place("orphan_path", (MAILBOXES, (mailboxid, user)), MAILBOX_CONFLICT)


def _unique(name: str, planter: Planter) -> str:
    return f"{name}-{planter.user}"


def _refer(planter: Planter, attachmentid: str, messageid: UUID, told: str) -> None:
    planter.execute(
        f"INSERT INTO {planter.keyspace}.attachmentmessageid"
        " (attachmentidasuuid, messageid, attachmentid) VALUES (?, ?, ?) USING TIMESTAMP ?",
        id_as_uuid(attachmentid),
        str(messageid),
        told,
        now_us(),
    )


def _note_reference(planter: Planter, kind: str, attachmentid: str, messageid: UUID) -> None:
    place = (REFERENCES, (id_as_uuid(attachmentid), str(messageid)))
    planter.note_place(kind, place, VERIFIED)


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
