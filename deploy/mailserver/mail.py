"""The words of the mail server: a message in a mailbox, its flags, its numbers, its clock."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

SYSTEM_FLAGS = ("answered", "deleted", "draft", "flagged", "recent", "seen", "user")
"""Each is a boolean column `flag<name>` in both tables."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one message in one mailbox."""

    system: frozenset[str] = frozenset()
    user: frozenset[str] = frozenset()

    def columns(self) -> dict[str, object]:
        """The boolean columns, all of them."""
        return {f"flag{name}": name in self.system for name in SYSTEM_FLAGS}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part of a message that James stores apart as well. `size` in octets."""

    id: str
    type: str
    size: int
    name: str | None = None
    cid: str | None = None
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """What a message keeps wherever it is copied to. Sizes in octets.

    Only a message that arrives has its attachments here: no place of it holds them.
    """

    messageid: UUID
    internaldate: datetime
    bodystartoctet: int
    fullcontentoctets: int
    headercontent: str
    threadid: UUID | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message in one mailbox: a row of the truth, and one of the projection."""

    content: Content
    mailboxid: UUID
    uid: int
    modseq: int
    flags: Flags
    save_date: datetime | None = None

    @property
    def messageid(self) -> UUID:
        """The id that its copies share."""
        return self.content.messageid

    def columns(self) -> dict[str, object]:
        """All columns that both tables hold as plain cells: no ids, no userflags."""
        return {
            "modseq": self.modseq,
            **self.flags.columns(),
            "threadid": self.content.threadid,
            "internaldate": self.content.internaldate,
            "save_date": self.save_date,
            "bodystartoctet": self.content.bodystartoctet,
            "fullcontentoctets": self.content.fullcontentoctets,
            "headercontent": self.content.headercontent,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """What an operation does to one message in one mailbox; None: it is not there."""

    operation: str
    before: Message | None
    after: Message | None

    @property
    def message(self) -> Message:
        """The message as it is now, or as it last was. One of the two must be there."""
        message = self.after or self.before
        assert message is not None
        return message


def message_of_row(row: Any) -> Message:
    """A complete row of either table (as the driver returns it) as a message."""
    return Message(
        content=Content(
            messageid=row.messageid,
            internaldate=row.internaldate,
            bodystartoctet=row.bodystartoctet,
            fullcontentoctets=row.fullcontentoctets,
            headercontent=row.headercontent,
            threadid=row.threadid,
        ),
        mailboxid=row.mailboxid,
        uid=row.uid,
        modseq=row.modseq,
        flags=Flags(
            system=frozenset(name for name in SYSTEM_FLAGS if getattr(row, f"flag{name}")),
            user=frozenset(row.userflags or ()),
        ),
        save_date=row.save_date,
    )


@dataclass(slots=True)
class Numbers:
    """Hands out uids and modseqs, rising by one in each mailbox; shared by all servers."""

    _uids: Counter[UUID] = field(default_factory=Counter)
    _modseqs: Counter[UUID] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_uid(self, mailboxid: UUID) -> int:
        """The next uid of a mailbox, from 1."""
        with self._lock:
            self._uids[mailboxid] += 1
            return self._uids[mailboxid]

    def next_modseq(self, mailboxid: UUID) -> int:
        """The next modseq of a mailbox, from 1."""
        with self._lock:
            self._modseqs[mailboxid] += 1
            return self._modseqs[mailboxid]


class Clock:
    """A mail server's clock: write times in microseconds, never the same twice.

    `offset_ms` sets it ahead of (or, negative, behind) this machine's clock.
    """

    def __init__(self, offset_ms: int = 0) -> None:
        self._offset_us = offset_ms * 1000
        self._last_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """The time in microseconds, later than every time given before."""
        with self._lock:
            now_us = time.time_ns() // 1000 + self._offset_us
            self._last_us = max(now_us, self._last_us + 1)
            return self._last_us
