"""Carries out the fix of one conflict after the other."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from reconcilers.mailboxes.conflicts import Conflict
from reconcilers.mailboxes.plan import Fix, MailboxWrite
from streaming.commands.mailboxes.shown import FixOutcome, ShownConflict

log = logging.getLogger("reconciler")


@dataclass(frozen=True, slots=True)
class Fixer:
    """Sends writes with ``send``, which returns False if a row has changed since it was seen.

    Both sides of a conflict, with its writes as CQL, are logged before the first one is sent.
    ``is_right`` reads the rows of a conflict again. ``cql`` is the text of a write.
    """

    send: Callable[[MailboxWrite], bool]
    is_right: Callable[[Conflict], bool]
    cql: Callable[[MailboxWrite], str]

    def fix(self, conflict: Conflict, fix: Fix) -> ShownConflict:
        """Send the writes in their order, up to the first that is not applied, and read again.

        Raises as ``send`` and ``is_right`` do; another run continues.
        """
        writes = tuple(map(self.cql, fix.writes))
        if not writes:
            return ShownConflict(conflict, fix, writes, FixOutcome.LEFT)
        before = ShownConflict(conflict, fix, writes, FixOutcome.PLANNED)
        log.info("mailbox objects before their fix: %s", json.dumps(before.object()))
        for write in fix.writes:
            if not self.send(write):
                log.warning("not applied, the row has changed: %s", self.cql(write))
                break
        fixed = self.is_right(conflict)
        outcome = FixOutcome.FIXED if fixed else FixOutcome.PARTLY_FIXED
        return ShownConflict(conflict, fix, writes, outcome)
