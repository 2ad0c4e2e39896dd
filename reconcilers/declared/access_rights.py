"""S3: the rights that users have in a mailbox, derived from where James stores them. Pure.

=====================  ============================================================================
truth                  the rights of a mailbox
=====================  ============================================================================
`eventstore`           ``newAcl`` of the newest event of type ``acl-updated``
`acl` (older James)    JSON in one cell
`aclv2`                its rows; no derivation
=====================  ============================================================================

A name that an earlier list has and the newest has not is a truth row without rights: the row of a
user who has lost all rights is then compared, too. A list that James could not load either is
`Malformed` as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconcilers.declared.truth import Derivation, Derived, Malformed, Owner, TruthTable
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import KeyValue, Micros, Row

ACL_UPDATED = "acl-updated"
"""The type of the events of rights; an aggregate may have others."""
LONGEST_NAME = 65_535
"""The most bytes that Cassandra accepts in a key."""
OBSOLETE = {"c": "kx", "d": "etx"}
"""Letters of an older standard, with those that James reads them as."""
LETTERS = frozenset("aeiklprstwx")
SPECIAL = frozenset({"anyone", "authenticated", "owner"})
"""Names that stand for several users."""

Rights = dict[str, frozenset[str]]
"""The letters of each name of a list."""


class _NotAList(ValueError):
    """Content that is not a list of rights; the message says why."""


NOBODY: Rights = {"owner": frozenset()}
"""The rights in a list that is empty, as a row that belongs in no table: the list was read."""


def has_rights(truth: Row) -> bool:
    """Whether a truth row grants rights to one user: not to a group, and not negative ones."""
    name = str(truth.get("key"))
    return bool(truth.get("rights")) and name[:1] not in ("$", "-") and name not in SPECIAL


def has_letters(truth: Row) -> bool:
    """Whether a truth row grants or denies anything to a name: a user, a group, a negative one."""
    return bool(truth.get("rights"))


def tells_a_list(cell: object) -> bool:
    """Whether a cell of the event store or of `acl` holds a list; an event of another type not."""
    try:
        told = _object(cell)
    except _NotAList:
        return False
    return told.get("type") == ACL_UPDATED or "entries" in told


def of_events(source: KeyValue, stored: Sequence[Row]) -> Derived:
    """The rights of a mailbox from the events of its aggregate, in any order."""
    by_number = {row.get("eventid"): row for row in stored if row.get("eventid") is not None}
    known, at = _Known(), None
    newest: Mapping[str, str] | None = None
    for number in sorted(by_number):  # type: ignore[type-var] # clustering keys are never null
        row = by_number[number]
        try:
            for newest in _lists_of(row.get("event")):
                known.add(newest)
                at = row.written.get("event")
        except _NotAList as fault:
            return Malformed(f"event {number} of {source}: {fault}")
    if newest is None:
        return ()
    none = dict.fromkeys(known.names, frozenset[str]()) or NOBODY
    current = {name: known.letters[spelled] for name, spelled in newest.items()}
    return _rows("aggregateid", source, {**none, **current}, at)


@dataclass(slots=True)
class _Known:
    """The names and spellings of rights in all lists of a history, each checked once.

    Each event repeats two whole lists: checking each entry would take seconds for a mailbox that
    was shared with a thousand users one by one.
    """

    names: set[str] = field(default_factory=set)
    letters: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, entries: Mapping[str, str]) -> None:
        """Check what is new in a list. Raises `_NotAList`."""
        self.names.update(_name(each) for each in entries.keys() - self.names)
        try:
            new = set(entries.values()) - self.letters.keys()
        except TypeError as fault:  # not even hashable
            raise _NotAList("rights are not text") from fault
        self.letters |= {each: _letters(each) for each in new}


def of_json(source: KeyValue, stored: Sequence[Row]) -> Derived:
    """The rights of a mailbox from the JSON in its only row; none if the cell is null."""
    for row in stored:
        text = row.get("acl")
        if text is None:
            continue
        try:
            rights = _rights(_object(text)) or NOBODY
            return _rows("id", source, rights, row.written.get("acl"))
        except _NotAList as fault:
            return Malformed(f"list of {source}: {fault}")
    return ()


def _rows(column: str, source: KeyValue, rights: Rights, at: Micros | None) -> tuple[Row, ...]:
    written = {} if at is None else {"rights": at}
    return tuple(
        Row({column: source, "key": name, "rights": letters}, written)
        for name, letters in sorted(rights.items())
    )


def _lists_of(event: object) -> Iterator[Mapping[str, str]]:
    """The earlier and the new list of an event as they are; nothing if it is of another type."""
    told = _object(event)
    if told.get("type") != ACL_UPDATED:
        return
    difference = told.get("aclDiff")
    if not isinstance(difference, dict):
        raise _NotAList("it has no aclDiff")
    for each in ("oldAcl", "newAcl"):
        yield _entries(difference.get(each))


def _object(text: object) -> Mapping[str, Any]:
    try:
        told = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError) as fault:
        raise _NotAList("it is not JSON") from fault
    if not isinstance(told, dict):
        raise _NotAList("it is not a JSON object")
    return told


def _rights(listed: object) -> Rights:
    return {_name(name): _letters(rights) for name, rights in _entries(listed).items()}


def _entries(listed: object) -> Mapping[str, str]:
    """The entries of a list, of which neither names nor letters are checked."""
    entries = listed.get("entries") if isinstance(listed, dict) else None
    if not isinstance(entries, dict):
        raise _NotAList("a list of rights has no entries")
    return entries


def _name(name: str) -> str:
    try:
        length = len(name.encode())
    except UnicodeEncodeError as fault:
        raise _NotAList("a name is not text") from fault
    if not 0 < length <= LONGEST_NAME:
        raise _NotAList(f"a name has {length} bytes")
    return name


def _letters(rights: object) -> frozenset[str]:
    if not isinstance(rights, str):
        raise _NotAList("rights are not text")
    letters = frozenset("".join(OBSOLETE.get(each, each) for each in rights))
    if not letters <= LETTERS:
        raise _NotAList(f"unknown rights {', '.join(map(repr, sorted(letters - LETTERS)))}")
    return letters


MAILBOX = Owner("mailbox", "id", "mailbox")

EVENTS = TruthTable(
    table="eventstore",
    source=KeyColumn("aggregateid", "timeuuid", "list"),
    slot=("key", "aggregateid"),
    required=("rights",),
    derive=Derivation(("eventid",), ("event",), ("rights",), of_events, shared=True),
    owner=MAILBOX,
    names_all=True,
)
"""Events of aggregates; an aggregate named by a mailbox's id holds the rights in it."""

EVENTS_BY_MAILBOX = replace(EVENTS, slot=("aggregateid", "key"))
"""The same, for rows that are partitioned by mailbox."""

JSON_LISTS = TruthTable(
    table="acl",
    source=KeyColumn("id", "timeuuid", "list"),
    slot=("key", "id"),
    required=("rights",),
    derive=Derivation((), ("acl",), ("rights",), of_json),
    owner=MAILBOX,
    newer=EVENTS,
)
"""The list of each mailbox in one cell, as James stored it before it had events."""

LIST_ROWS = TruthTable(
    table="aclv2",
    source=KeyColumn("id", "timeuuid", "list"),
    slot=("key", "id"),
    owner=MAILBOX,
    newer=EVENTS,
)
"""A row for each name in a mailbox's list, where no events are stored."""
