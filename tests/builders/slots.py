"""Slots of messages, and what stands in them."""

from __future__ import annotations

from uuid import UUID

from reconcilers.words.model import Slot
from tests.builders.rows import MAILBOX


def mailbox_of(slot: Slot) -> UUID:
    """The mailbox of a message's slot."""
    mailboxid = slot.key[0]
    assert isinstance(mailboxid, UUID)
    return mailboxid


def uid_of(slot: Slot) -> int:
    """The UID of a message's slot."""
    uid = slot.key[1]
    assert isinstance(uid, int)
    return uid


def slots(*uids: int) -> frozenset[Slot]:
    """The slots of these UIDs in `MAILBOX`."""
    return frozenset(Slot(MAILBOX, uid) for uid in uids)
