"""A mailbox that is shared: its list of rights as James 3.8 writes it, and its users' rows.

A change of the list is one event, written by a lightweight transaction.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.stack.scenes import Scene
from tests.stack.streams import until

Granted = Mapping[str, str]
"""The letters of each name in a list."""


@dataclass
class SharedMailbox:
    """A mailbox with a list of rights, and the rows of its users."""

    scene: Scene
    id: UUID = field(default_factory=uuid.uuid1)
    events: list[Granted] = field(default_factory=list)

    def grant(self, granted: Granted) -> None:
        """Replace the list, in the event store only."""
        before = self.events[-1] if self.events else {}
        told = {
            "eventId": len(self.events),
            "aggregateKey": str(self.id),
            "type": "acl-updated",
            "aclDiff": {"oldAcl": {"entries": before}, "newAcl": {"entries": granted}},
        }
        self._write(json.dumps(told))
        self.events.append(granted)

    def _write(self, event: str) -> None:
        self.scene.execute(
            "INSERT INTO $mail.eventstore (aggregateid, eventid, event) VALUES (%s, %s, %s)"
            " IF NOT EXISTS",
            str(self.id),
            len(self.events),
            event,
        )

    def exist(self) -> None:
        """Write the row of the mailbox itself."""
        self.scene.execute(
            "INSERT INTO $mail.mailbox (id, name, uidvalidity) VALUES (%s, %s, %s)",
            self.id,
            "shared",
            1,
        )

    def break_list(self) -> None:
        """Write an event that is not JSON."""
        self._write("{")

    def show(self, user: str, rights: str) -> None:
        """Write the row of a user."""
        self.scene.execute(
            "INSERT INTO $mail.usermailboxacl (username, mailboxid, rights) VALUES (%s, %s, %s)",
            user,
            self.id,
            rights,
        )

    def hide(self, user: str) -> None:
        """Delete the row of a user."""
        self.scene.execute(
            "DELETE FROM $mail.usermailboxacl WHERE username = %s AND mailboxid = %s",
            user,
            self.id,
        )

    def shown(self, user: str) -> str | None:
        """The letters in the row of a user, None without one."""
        row = self.scene.execute(
            "SELECT rights FROM $mail.usermailboxacl WHERE username = %s AND mailboxid = %s",
            user,
            self.id,
        ).one()
        return None if row is None else str(row.rights)

    def list_row(self, name: str, rights: str) -> None:
        """Write the row of a name in the list's own table, as James adds one."""
        self.scene.execute(
            "UPDATE $mail.aclv2 SET rights = rights + %s WHERE id = %s AND key = %s",
            set(rights),
            self.id,
            name,
        )

    def listed(self) -> dict[str, str]:
        """The letters of each name in that table."""
        query = "SELECT key, rights FROM $mail.aclv2 WHERE id = %s"
        rows = self.scene.execute(query, self.id)
        return {row.key: "".join(sorted(row.rights or ())) for row in rows}

    def await_listed(self, **rights: str) -> None:
        """Wait until that table has these names, with these letters, and no other."""
        until(f"{self.id} lists {rights}", lambda: self.listed() == rights)

    def await_shown(self, user: str, rights: str | None) -> None:
        until(f"{user} has {rights} in {self.id}", lambda: self.shown(user) == rights)

    def told(self, user: str, **facts: Any) -> list[dict[str, Any]]:
        """All that was logged of a user's row."""
        return self.scene.stream.findings(mailboxid=self.id, username=user, **facts)
