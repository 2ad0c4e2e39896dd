"""James's own repair of counters, which may act beside ours: recompute, then reset."""

import threading
import time
from collections.abc import Sequence
from uuid import UUID

from cassandra.cluster import Session


class Recomputing:
    """Recomputes the counters of mailboxes and resets them, in two statements, again and again.

    As James does it: what the projection lists, each message's flags from the truth. ``every`` is
    how long (seconds) it rests after a pass.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        mailboxes: Sequence[UUID],
        every: float,
        rows_per_second: int,
    ) -> None:
        self.passes = 0
        self._session, self._mailboxes = session, mailboxes
        self._every, self._rows_per_second = every, rows_per_second
        self._listed = session.prepare(
            f"SELECT messageid, uid FROM {keyspace}.messageidtable WHERE mailboxid = ?"
        )
        self._truth = session.prepare(
            f"SELECT flagseen FROM {keyspace}.imapuidtable"
            " WHERE messageid = ? AND mailboxid = ? AND uid = ?"
        )
        self._stored = session.prepare(
            f"SELECT count, unseen FROM {keyspace}.mailboxcounters WHERE mailboxid = ?"
        )
        self._add = session.prepare(
            f"UPDATE {keyspace}.mailboxcounters SET count = count + ?, unseen = unseen + ?"
            " WHERE mailboxid = ?"
        )

    def run(self, stop: threading.Event) -> None:
        """One pass over all mailboxes, again and again."""
        while not stop.wait(self._every):
            for mailboxid in self._mailboxes:
                self._reset(mailboxid)
            self.passes += 1

    def _reset(self, mailboxid: UUID) -> None:
        rows = []
        for listed in self._session.execute(self._listed, (mailboxid,)):
            place = (listed.messageid, mailboxid, listed.uid)
            rows += list(self._session.execute(self._truth, place))
            time.sleep(1 / self._rows_per_second)
        unseen = sum(not row.flagseen for row in rows)
        now = self._session.execute(self._stored, (mailboxid,)).one()
        if now is not None:
            values = (-(now.count or 0), -(now.unseen or 0), mailboxid)
            self._session.execute(self._add, values)
        self._session.execute(self._add, (len(rows), unseen, mailboxid))
