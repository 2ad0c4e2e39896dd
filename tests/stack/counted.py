"""Mailboxes with counters and quotas, made by hand: right in the truth, wrong in the sums."""

import uuid
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import PATIENCE, until

SIZE = 4_000
"""Octets of each message (`scenes.cells`)."""
Counts = tuple[int, int]


@dataclass
class Counted:
    """A mailbox of a user, its messages, and what its counters and its user's quota say."""

    scene: Scene
    user: str = field(default_factory=lambda: f"user-{uuid.uuid4().hex[:8]}")
    mailboxid: UUID = field(default_factory=uuid.uuid1)
    places: list[Place] = field(default_factory=list)

    def create(self) -> "Counted":
        """Both tables of mailboxes know it."""
        name = f"box-{self.mailboxid}"
        path = (
            "INSERT INTO $mail.mailboxpathv3 (namespace, user, mailboxname, mailboxid, uidvalidity)"
            " VALUES ('#private', %s, %s, %s, 1)"
        )
        self.scene.execute(path, self.user, name, self.mailboxid)
        mailbox = (
            "INSERT INTO $mail.mailbox (id, mailboxbase, name, uidvalidity)"
            f" VALUES (%s, {{namespace: '#private', user: '{self.user}'}}, %s, 1)"
        )
        self.scene.execute(mailbox, self.mailboxid, name)
        return self

    def hold(self, seen: int, unseen: int) -> "Counted":
        """So many messages, in the truth and in the projection."""
        for number in range(seen + unseen):
            place = Place(mailboxid=self.mailboxid, uid=len(self.places) + 1)
            self.scene.write_both(place, cells(flagseen=number < seen))
            self.places.append(place)
        return self

    def touch(self) -> None:
        """A change that changes nothing: its event wakes the mailbox."""
        self.scene.write_truth(self.places[0], {"modseq": 7})

    def add(self, count: int, unseen: int) -> "Counted":
        """To its counters."""
        added = "count = count + %s, unseen = unseen + %s"
        update = f"UPDATE $mail.mailboxcounters SET {added} WHERE mailboxid = %s"
        self.scene.execute(update, count, unseen, self.mailboxid)
        return self

    def drop_counters(self) -> "Counted":
        """Delete its counter row."""
        self.scene.execute("DELETE FROM $mail.mailboxcounters WHERE mailboxid = %s", self.mailboxid)
        return self

    def counters(self) -> Counts | None:
        """Count and unseen as stored."""
        row = self._one("mailboxcounters", "mailboxid", self.mailboxid)
        return None if row is None else (row.count or 0, row.unseen or 0)

    @property
    def root(self) -> str:
        """Its user's quota root."""
        return f"#private&{self.user}"

    def add_quota(self, messages: int, octets: int) -> "Counted":
        """To its user's current quota."""
        added = "messagecount = messagecount + %s, storage = storage + %s"
        update = f"UPDATE $mail.currentquota SET {added} WHERE quotaroot = %s"
        self.scene.execute(update, messages, octets, self.root)
        return self

    def quota(self) -> Counts | None:
        """Messages and octets as stored."""
        row = self._one("currentquota", "quotaroot", self.root)
        return None if row is None else (row.messagecount or 0, row.storage or 0)

    def _one(self, table: str, key: str, value: Any) -> Any:
        return self.scene.execute(f"SELECT * FROM $mail.{table} WHERE {key} = %s", value).one()

    def findings(self) -> list[dict[str, Any]]:
        """What was told of its counters."""
        return self.scene.stream.findings(mailboxid=self.mailboxid, projection="mailbox_counters")

    def quota_findings(self) -> list[dict[str, Any]]:
        """What was told of its user's quota."""
        return self.scene.stream.findings(quotaroot=self.root, projection="current_quota")

    def await_counters(self, right: Counts, patience: float = PATIENCE) -> None:
        """Until they say so."""
        until(f"the counters are {right}", lambda: self.counters() == right, patience)

    def await_verified(self) -> None:
        """Until the last that was told of its counters is that they are right."""
        until("that is verified", lambda: _is_verified(self.findings()))

    def await_quota_verified(self) -> None:
        """Until the last that was told of its user's quota is that it is right."""
        until("that is verified", lambda: _is_verified(self.quota_findings()))


def _is_verified(findings: list[dict[str, Any]]) -> bool:
    return bool(findings) and findings[-1]["state"] == "verified"


@dataclass
class Newer(Counted):
    """A mailbox of ana@example.org, or the like; her quota in the newer table."""

    user: str = field(default_factory=lambda: f"ana-{uuid.uuid4().hex[:8]}@example.org")

    @property
    def identifier(self) -> str:
        """The domain is there twice."""
        return f"#private&{self.user}@example.org"

    def add_quota(self, messages: int, octets: int) -> "Newer":
        update = (
            "UPDATE $mail.quotacurrentvalue SET currentvalue = currentvalue + %s"
            " WHERE identifier = %s AND quotacomponent = %s AND quotatype = %s"
        )
        for component, quotatype, value in (
            ("MAILBOX", "count", messages),
            ("MAILBOX", "size", octets),
            ("SIEVE", "size", 77),
        ):
            self.scene.execute(update, value, self.identifier, component, quotatype)
        return self

    def rows(self) -> dict[tuple[str, str], int]:
        """All of hers, by component and type."""
        query = "SELECT * FROM $mail.quotacurrentvalue WHERE identifier = %s"
        found = self.scene.execute(query, self.identifier)
        return {(row.quotacomponent, row.quotatype): row.currentvalue for row in found}

    def quota(self) -> Counts:
        rows = self.rows()
        return rows["MAILBOX", "count"], rows["MAILBOX", "size"]
