"""``reconcile findings``: what was found, and what a person decides."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from checkpoints.clock import now_micros
from checkpoints.codec import Json, finding_to_json
from checkpoints.journal import Journal
from reconcilers.behind import waits_for_it
from reconcilers.errors import Misconfigured
from reconcilers.families import FAMILIES, family_named
from reconcilers.family import Family
from reconcilers.finding import Finding, State, accepted, retried
from reconcilers.key import named, shape, slot_from_text, text_of
from reconcilers.model import ACCEPTABLE, Kind, Micros, Slot, Wake
from streaming.commands import dead_letters as letters
from streaming.commands.listing import FORMATS
from streaming.commands.unused_flags import collected_flags_of, unused_flags
from streaming.pipeline.open_findings import finding_wake
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own
from streaming.topics import publish_wakes

TABLE_ROWS = 100

Publish = Callable[[Family, Iterable[Wake]], None]
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
    ids = {"nargs": "*", "action": "extend", "type": _key, "metavar": "KEY"}
    does.add_argument("--retry", help="try stuck and unreadable ones again", **ids)  # type: ignore[arg-type]
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


def _uuid(text: str) -> UUID:
    return _read(UUID, text, "a mailbox id (a UUID)")


def _day(text: str) -> date:
    if text == "today":
        return datetime.now(UTC).date()
    return _read(date.fromisoformat, text, "a day as YYYY-MM-DD, or today")


def _key(text: str) -> str:
    """The text itself, if it can be the key of any family."""
    if not any(True for _ in _slots_named(FAMILIES, text)):
        shapes = ", ".join(dict.fromkeys(shape(family.key) for family in FAMILIES))
        raise argparse.ArgumentTypeError(f"{text!r} is not any of {shapes}, as the list shows them")
    return text


def _slots_named(families: Iterable[Family], text: str) -> Iterator[tuple[Family, Slot]]:
    """Those of the families that have such a key, with the slot that it is there."""
    for family in families:
        with suppress(ValueError):
            yield family, slot_from_text(family.key, text)


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

    def takes(self, family: Family, finding: Finding) -> bool:
        """Whether a finding is one of them."""
        key = named(family.key, finding.slot.key)
        told = {"state": finding.state, "kind": finding.kind, "projection": finding.projection}
        return self.has({**key, **told})

    def has(self, finding: Mapping[str, object]) -> bool:
        """Whether a line of the log is one of them."""
        return (
            self.state in (None, finding["state"])
            and self.kind in (None, finding["kind"])
            and self.projection in (None, finding["projection"])
            and (self.mailbox is None or str(self.mailbox) == finding.get("mailboxid"))
        )


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """List, or decide. Returns 1 when something that was named could not be decided."""
    if arguments.retry_dead_letters:
        return letters.retry(settings)
    wanted = FindingFilter(arguments.state, arguments.kind, arguments.mailbox, arguments.projection)
    if arguments.unused_flags:
        unused = unused_flags(collected_flags_of(settings), arguments.mailbox, now_micros)
        found = ((family_named(each.family), each) for each in unused)
        _list(_as_json(found, wanted), arguments)
        return 0
    own = open_own(settings)
    topic = settings.kafka.suspects_topic
    desk = Desk(own.journal, partial(publish_wakes, settings.kafka, topic), now_micros)
    for keys, decision in ((arguments.retry, RETRY), (arguments.accept, ACCEPT)):
        if keys is not None:
            return desk.decide(decision, _chosen(keys, arguments), wanted)
    if arguments.log:
        _list(filter(wanted.has, own.journal.log(arguments.log)), arguments)
    else:
        _list(_as_json(_open(own.journal), wanted), arguments)
    return 0


def _open(journal: Journal) -> Iterator[tuple[Family, Finding]]:
    for family in FAMILIES:
        for finding in journal.open_findings(family):
            yield family, finding


def _as_json(found: Iterable[tuple[Family, Finding]], wanted: FindingFilter) -> Iterator[Json]:
    """Those that are meant."""
    for family, finding in found:
        if wanted.takes(family, finding):
            yield finding_to_json(finding, family)


def _list(lines: Iterator[Json], arguments: argparse.Namespace) -> None:
    limit = arguments.limit
    if limit is None and arguments.format == "table":
        limit = TABLE_ROWS
    for text in FORMATS[arguments.format](islice(lines, limit)):
        print(text)
    if limit is not None and next(lines, None) is not None and arguments.format == "table":
        print(f"… and more: --limit, or --format jsonl (shown: {limit})")


def _chosen(keys: list[str], arguments: argparse.Namespace) -> frozenset[str] | None:
    """The keys named, None for all. Raises `Misconfigured` when it is neither or both."""
    if arguments.log is not None:
        raise Misconfigured("--log only lists: decide on open findings")
    if bool(keys) == arguments.all:
        raise Misconfigured("name what to decide as the list shows it, or take --all that match")
    return frozenset(keys) if keys else None


# --- decisions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person may decide: for which findings (else why not), and what it changes."""

    done: str
    refusal: Callable[[Finding], str | None]
    change: Decide


def _not_retried(finding: Finding) -> str | None:
    if finding.state is State.STUCK or finding.kind is Kind.UNREADABLE:
        return None
    return f"it is {finding.state.value}, not stuck: the stream looks at it by itself"


def _not_accepted(finding: Finding) -> str | None:
    if finding.kind in ACCEPTABLE or waits_for_it(finding.sentence):
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
    families: tuple[Family, ...] = FAMILIES

    def decide(self, decision: Decision, keys: frozenset[str] | None, wanted: FindingFilter) -> int:
        """Decide on the keys named, or (None) on all that match and may be decided.

        A key that fits several families means each open finding there. Returns 1 when one that was
        named is not open, does not match, or may not be decided.
        """
        found: set[str] = set()
        done = refused = 0
        for key, family, finding in self._matching(keys, wanted):
            found.add(key)
            why = decision.refusal(finding)
            if why is None:
                self._carry_out(decision, family, finding)
                done += 1
            elif keys is not None:
                print(f"refused  {text_of(finding.slot)} {finding.kind.value}: {why}")
                refused += 1
        missing = sorted((keys or frozenset()) - found)
        for key in missing:
            print(f"unknown  {key}: no open finding there matches")
        print(
            f"{done} {decision.done}; looked at again one delay from now"
            if done
            else "nothing done"
        )
        return int(bool(refused or missing))

    def _matching(
        self, keys: frozenset[str] | None, wanted: FindingFilter
    ) -> Iterator[tuple[str, Family, Finding]]:
        """Each finding that is meant, by the key that named it."""
        named_ones = self._all() if keys is None else self._named(keys)
        for key, family, finding in named_ones:
            if wanted.takes(family, finding):
                yield key, family, finding

    def _all(self) -> Iterator[tuple[str, Family, Finding]]:
        for family in self.families:
            for finding in self.journal.open_findings(family):
                yield text_of(finding.slot), family, finding

    def _named(self, keys: frozenset[str]) -> Iterator[tuple[str, Family, Finding]]:
        for key in sorted(keys):
            for family, slot in _slots_named(self.families, key):
                for name in family.names:
                    for finding in self.journal.recall(family, name, [slot]).values():
                        yield key, family, finding

    def _carry_out(self, decision: Decision, family: Family, finding: Finding) -> None:
        now = self.clock()
        self.journal.decide(decision.change(finding, now))
        if family.projections:  # a tally's findings are read now and then
            self.publish(family, [finding_wake(finding)])
        where = text_of(finding.slot)
        print(f"{decision.done:<8} {where} {finding.kind.value}: {finding.sentence}")
