"""``reconcile findings`` and ``reconcile resume``: what was found, and what a person decides."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from checkpoints.clock import now_micros
from checkpoints.codec import Json, finding_to_json
from checkpoints.journal import Journal
from reconcilers.errors import Misconfigured
from reconcilers.families import FAMILIES
from reconcilers.finding import Finding, State, accepted, retried
from reconcilers.model import ACCEPTABLE, Kind, Micros, Slot, Wake
from streaming.commands import dead_letters as letters
from streaming.commands.listing import FORMATS
from streaming.commands.unused_flags import collected_flags_of, unused_flags
from streaming.pipeline.open_findings import finding_wake
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own
from streaming.topics import publish_wakes

TABLE_ROWS = 100

Publish = Callable[[str, Iterable[Wake]], None]
Decide = Callable[[Finding, Micros], Finding]
T = TypeVar("T")


def add_command(commands: Any) -> None:
    """``reconcile findings``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "findings", help="list, export, retry and accept findings"
    )
    parser.add_argument("--state", choices=[state.value for state in State])
    parser.add_argument("--kind", choices=[kind.value for kind in Kind])
    parser.add_argument("--mailbox", type=_uuid, metavar="ID")
    parser.add_argument("--projection", metavar="P")
    parser.add_argument("--format", choices=sorted(FORMATS), default="table")
    parser.add_argument("--log", type=_day, metavar="DAY", help="what happened on a day (UTC)")
    parser.add_argument("--limit", type=int, metavar="N", help="most lines (table: 100)")
    does = parser.add_mutually_exclusive_group()
    ids = {"nargs": "*", "action": "extend", "type": _slot, "metavar": "MAILBOXID/UID"}
    does.add_argument("--retry", help="try stuck ones again", **ids)  # type: ignore[arg-type]
    does.add_argument("--accept", help="carry out what was held", **ids)  # type: ignore[arg-type]
    does.add_argument(
        "--retry-dead-letters", action="store_true", help="publish their records once more"
    )
    does.add_argument(
        "--unused-flags",
        action="store_true",
        help="instead: flags that mailboxes offer and no message has, as read now (--mailbox)",
    )
    parser.add_argument("--all", action="store_true", help="--retry, --accept: all that match")
    parser.set_defaults(run=run)


def add_resume(commands: Any) -> None:
    """``reconcile resume``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "resume", help="close the breakers; what was held is looked at again"
    )
    parser.set_defaults(run=resume)


def _uuid(text: str) -> UUID:
    return _read(UUID, text, "a mailbox id (a UUID)")


def _day(text: str) -> date:
    if text == "today":
        return datetime.now(UTC).date()
    return _read(date.fromisoformat, text, "a day as YYYY-MM-DD, or today")


def _slot(text: str) -> Slot:
    mailboxid, _, uid = text.rpartition("/")
    wanted = "MAILBOXID/UID, as the list shows them"
    return Slot(_read(UUID, mailboxid, wanted), _read(int, uid, wanted))


def _read(read: Callable[[str], T], text: str, wanted: str) -> T:
    try:
        return read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}") from wrong


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings are meant; None takes any."""

    state: str | None = None
    kind: str | None = None
    mailbox: UUID | None = None
    projection: str | None = None

    def takes(self, finding: Finding) -> bool:
        """Whether an open finding is one of them."""
        return (
            self.state in (None, finding.state.value)
            and self.kind in (None, finding.kind.value)
            and self.projection in (None, finding.projection)
            and self.mailbox in (None, finding.slot.mailboxid)
        )

    def has(self, finding: Json) -> bool:
        """Whether a line of the log is one of them."""
        return (
            self.state in (None, finding["state"])
            and self.kind in (None, finding["kind"])
            and self.projection in (None, finding["projection"])
            and (self.mailbox is None or str(self.mailbox) == finding["mailboxid"])
        )


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """List, or decide. Returns 1 when something that was named could not be decided."""
    if arguments.retry_dead_letters:
        return letters.retry(settings)
    wanted = FindingFilter(arguments.state, arguments.kind, arguments.mailbox, arguments.projection)
    if arguments.unused_flags:
        unused = unused_flags(collected_flags_of(settings), arguments.mailbox, now_micros)
        _list(map(finding_to_json, filter(wanted.takes, unused)), arguments)
        return 0
    own = open_own(settings)
    topic = settings.kafka.suspects_topic
    desk = Desk(own.journal, partial(publish_wakes, settings.kafka, topic), now_micros)
    for slots, decision in ((arguments.retry, RETRY), (arguments.accept, ACCEPT)):
        if slots is not None:
            return desk.decide(decision, _chosen(slots, arguments), wanted)
    if arguments.log:
        _list(filter(wanted.has, own.journal.log(arguments.log)), arguments)
    else:
        _list(map(finding_to_json, filter(wanted.takes, _open(own.journal))), arguments)
    return 0


def resume(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Close the breakers; the running stream sees it with its next batch."""
    journal = open_own(settings).journal
    opened = journal.breakers()
    journal.close_breakers(now_micros())
    for breaker, why in opened.items():
        print(f"closed breaker {breaker.value}: it had opened for {why}")
    if opened:
        print("the running stream looks again at what was held with its next batch")
    else:
        print("no breaker was open")
    return 0


def _open(journal: Journal) -> Iterator[Finding]:
    for family in FAMILIES:
        yield from journal.open_findings(family)


def _list(lines: Iterator[Json], arguments: argparse.Namespace) -> None:
    limit = arguments.limit
    if limit is None and arguments.format == "table":
        limit = TABLE_ROWS
    for text in FORMATS[arguments.format](islice(lines, limit)):
        print(text)
    if limit is not None and next(lines, None) is not None and arguments.format == "table":
        print(f"… and more: --limit, or --format jsonl (shown: {limit})")


def _chosen(slots: list[Slot], arguments: argparse.Namespace) -> frozenset[Slot] | None:
    """The slots named, None for all. Raises `Misconfigured` when it is neither or both."""
    if arguments.log is not None:
        raise Misconfigured("--log only lists: decide on open findings")
    if bool(slots) == arguments.all:
        raise Misconfigured("name what to decide as MAILBOXID/UID, or take --all that match")
    return frozenset(slots) if slots else None


# --- decisions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person may decide: for which findings (else why not), and what it changes."""

    done: str
    refusal: Callable[[Finding], str | None]
    change: Decide


def _not_retried(finding: Finding) -> str | None:
    if finding.state is State.STUCK:
        return None
    return f"it is {finding.state.value}, not stuck: the stream looks at it by itself"


def _not_accepted(finding: Finding) -> str | None:
    if finding.kind in ACCEPTABLE:
        return None
    if finding.kind is Kind.COUNTER_DRIFT:
        return "it is corrected by itself, when the reason that its sentence names has gone"
    if finding.state is State.HELD:
        return "it waits for the breaker: `reconcile resume`"
    allowed = ", ".join(sorted(ACCEPTABLE))
    return f"{finding.kind.value} cannot be decided here, only: {allowed}"


RETRY = Decision("retried", _not_retried, retried)
ACCEPT = Decision("accepted", _not_accepted, accepted)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where decisions are carried out: the journal first, then the key is published."""

    journal: Journal
    publish: Publish
    clock: Callable[[], Micros]

    def decide(
        self, decision: Decision, slots: frozenset[Slot] | None, wanted: FindingFilter
    ) -> int:
        """Decide on the slots named, or (None) on all that match and may be decided.

        Returns 1 when one that was named is not open, does not match, or may not be decided.
        """
        found: set[Slot] = set()
        done = refused = 0
        for finding in self._matching(slots, wanted):
            found.add(finding.slot)
            why = decision.refusal(finding)
            if why is None:
                self._carry_out(decision, finding)
                done += 1
            elif slots is not None:
                print(f"refused  {_place(finding.slot)} {finding.kind.value}: {why}")
                refused += 1
        missing = sorted((slots or frozenset()) - found)
        for slot in missing:
            print(f"unknown  {_place(slot)}: no open finding there matches")
        print(
            f"{done} {decision.done}; looked at again one delay from now"
            if done
            else "nothing done"
        )
        return int(bool(refused or missing))

    def _matching(self, slots: frozenset[Slot] | None, wanted: FindingFilter) -> Iterator[Finding]:
        for family in FAMILIES:
            findings: Iterable[Finding] = self.journal.open_findings(family)
            if slots is not None:
                findings = [
                    finding
                    for name in family.names
                    for finding in self.journal.recall(family, name, slots).values()
                ]
            yield from filter(wanted.takes, findings)

    def _carry_out(self, decision: Decision, finding: Finding) -> None:
        now = self.clock()
        self.journal.put(decision.change(finding, now))
        if finding.family in WOKEN:
            self.publish(finding.family, [finding_wake(finding)])
        print(f"{decision.done:<8} {_place(finding.slot)} {finding.kind.value}: {finding.sentence}")


WOKEN = frozenset(family.name for family in FAMILIES if family.projections)
"""Families whose keys come through the suspects topic; a tally's findings are read now and then."""


def _place(slot: Slot) -> str:
    return f"{slot.mailboxid}/{slot.uid}"
