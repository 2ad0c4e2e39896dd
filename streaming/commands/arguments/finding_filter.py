"""Selects findings: by kind, place, owner and time, or by their keys."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.declared.tally import QuotaRoot
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import named, shape, slot_from_text
from reconcilers.words.model import Kind, Micros, Slot
from streaming.commands.arguments.names import one_of
from streaming.commands.arguments.times import moment_of, uuid_of

NAMESPACE = "#private"
"""Whose mailboxes a user's own are."""


@dataclass(frozen=True, slots=True)
class TheirPlaces:
    """A user's mailboxes (ids as text), and the key of the user's quota root."""

    mailboxes: frozenset[str]
    root: str


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings match; None matches any. Times are µs, ``until`` is exclusive."""

    state: str | None = None
    kind: str | None = None
    mailbox: UUID | None = None
    projection: str | None = None
    user: TheirPlaces | None = None
    since: Micros | None = None
    until: Micros | None = None

    def takes(self, family: Family, finding: Finding) -> bool:
        """Whether a finding matches; its time is when it was found."""
        key = named(family.key, finding.slot.key)
        told = {"state": finding.state, "kind": finding.kind, "projection": finding.projection}
        return self.has({**key, **told, "found_at": finding.found_at})

    def has(self, finding: Mapping[str, object]) -> bool:
        """Whether a line of the log or of a list matches."""
        return (
            self.state in (None, finding["state"])
            and self.kind in (None, finding["kind"])
            and self.projection in (None, finding["projection"])
            and (self.mailbox is None or str(self.mailbox) == finding.get("mailboxid"))
            and (self.user is None or _is_theirs(self.user, finding))
            and self._is_then(finding)
        )

    def _is_then(self, finding: Mapping[str, object]) -> bool:
        at = int(str(finding.get("at", finding.get("found_at", 0))))
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)

    def days(self, now: Micros) -> Iterator[date]:
        """The days (UTC) whose log may have matching lines, up to ``now`` (µs)."""
        last = _day_of(self.until if self.until is not None else now)
        first = last if self.since is None else _day_of(self.since)
        for number in range((last - first).days + 1):
            yield first + timedelta(days=number)


def _is_theirs(user: TheirPlaces, finding: Mapping[str, object]) -> bool:
    return finding.get("mailboxid") in user.mailboxes or finding.get("quotaroot") == user.root


def _day_of(at: Micros) -> date:
    return datetime.fromtimestamp(at // 1_000_000, UTC).date()


# --- the command line ---------------------------------------------------------------------------


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add ``--system``, ``--kind``, ``--state``, ``--mailbox``, ``--user`` and times."""
    add_system(parser)
    parser.add_argument("--kind", type=one_of([each.value for each in Kind]), metavar="KIND")
    parser.add_argument("--state", type=one_of([each.value for each in State]), metavar="STATE")
    parser.add_argument("--mailbox", type=uuid_of, metavar="ID")
    parser.add_argument("--user", metavar="NAME", help="whose mailboxes and quota")
    parser.add_argument(
        "--since", type=moment_of, metavar="TIME", help="ISO 8601 in UTC, or 90s, 30m, 2h, 1d ago"
    )
    parser.add_argument("--until", type=moment_of, metavar="TIME", help="likewise; not included")


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add ``--system``, as ``projection``."""
    systems = system_names()
    parser.add_argument(
        "--system",
        "--projection",
        dest="projection",
        type=one_of(systems),
        metavar="NAME",
        help=f"one of {', '.join(systems)}",
    )


def filter_of(
    arguments: argparse.Namespace, mailboxes: Callable[[QuotaRoot], Iterable[UUID]]
) -> FindingFilter:
    """The filter of the command line; ``mailboxes`` is called if a user is named."""
    user = None
    if arguments.user is not None:
        root = QuotaRoot(NAMESPACE, arguments.user)
        user = TheirPlaces(frozenset(str(each) for each in mailboxes(root)), str(root))
    return FindingFilter(
        state=arguments.state,
        kind=arguments.kind,
        mailbox=arguments.mailbox,
        projection=arguments.projection,
        user=user,
        since=arguments.since,
        until=arguments.until,
    )


def system_names() -> tuple[str, ...]:
    """The names of all projections and tallies, each once."""
    return tuple(dict.fromkeys(name for family in FAMILIES for name in family.names))


def key_of(text: str) -> str:
    """The text itself if a family has such keys. Raises `argparse.ArgumentTypeError`."""
    if not any(True for _ in slots_named(FAMILIES, text)):
        shapes = ", ".join(dict.fromkeys(shape(family.key) for family in FAMILIES))
        raise argparse.ArgumentTypeError(f"{text!r} is not any of {shapes}, as the list shows them")
    return text


def slots_named(families: Iterable[Family], text: str) -> Iterator[tuple[Family, Slot]]:
    """The families that have such a key, each with its slot."""
    for family in families:
        with suppress(ValueError):
            yield family, slot_from_text(family.key, text)
