"""`reconcile mailboxes` beside the stream: what it reports is judged like a finding."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from deploy.demo.show import Screen
from deploy.demo.sight import REPORTED
from deploy.demo.stream import Stream
from deploy.demo.verdict import Line
from deploy.mailserver.ledger import MAILBOX_CONFLICT
from deploy.mailserver.mailbox_statements import MAILBOXES
from reconcilers.words.exit_codes import ExitCode


def report_conflicts(stream: Stream, screen: Screen) -> list[Line]:
    """Run it once and say what it reports; its findings, one for each mailbox.

    Raises StreamDiedError where it finds no conflict, or fails.
    """
    screen.say("`reconcile mailboxes` compares the mailboxes themselves, and repairs none")
    told = stream.command("mailboxes", "--format", "jsonl", ends_with=ExitCode.PROBLEMS)
    lines = list(conflict_lines(json.loads(text) for text in told))
    for line in lines:
        screen.say(f"  {line['sentence']}")
    return lines


def conflict_lines(conflicts: Iterable[dict[str, Any]]) -> Iterator[Line]:
    """What the command says, as findings of the journal are written."""
    for conflict in conflicts:
        for mailboxid, user in sorted(
            {
                (row["mailboxid"], row["user"])
                for table in ("mailbox", "mailboxpathv3")
                for row in conflict[table]
                if row["mailboxid"]
            }
        ):
            yield {
                "projection": MAILBOXES,
                "mailboxid": mailboxid,
                "username": user,
                "kind": MAILBOX_CONFLICT,
                "state": REPORTED,
                "sentence": f"{conflict['kind']} of mailbox {mailboxid} of {user}:"
                f" {conflict['outcome']}",
            }
