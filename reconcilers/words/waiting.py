"""The reasons for which a finding waits: a closed set with the meaning of each. Pure.

Each limit, pause or condition that holds a repair back returns a `Waiting`. Code decides by
``wait`` alone. ``why`` is text for people, may quote what a person typed, and is never parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Wait(StrEnum):
    """What a finding waits for. The value is used in the journal, in JSON and in metrics."""

    HOLD = "hold"
    PAUSE = "pause"
    PILOT = "pilot"
    OWN_KEYSPACE = "own_keyspace"
    PAUSES_UNKNOWN = "pauses_unknown"
    BREAKER = "breaker"
    COMMAND = "command"
    DECISION = "decision"
    BEHIND = "behind"
    CEILING = "ceiling"
    CLOCKS = "clocks"
    FAST_WRITERS = "fast_writers"
    TABLE = "table"
    ROW = "row"
    LOOK = "look"
    OBSERVING = "observing"
    CHANGES = "changes"
    MESSAGES_DIFFER = "messages_differ"
    LISTING_INCOMPLETE = "listing_incomplete"
    OWNER = "owner"
    OTHER_TABLE = "other_table"
    NODE_AWAY = "node_away"
    LEASE = "lease"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a finding waits. ``why`` is for people and is never parsed."""

    wait: Wait
    why: str

    def __str__(self) -> str:
        return self.why


def why_of(waiting: Waiting | None) -> str | None:
    """The text for people, None if nothing waits."""
    return None if waiting is None else waiting.why


class Ends(StrEnum):
    """Who ends a wait."""

    PERSON = "a person"
    TIME = "its time, or a person"
    STREAM = "the stream"


@dataclass(frozen=True, slots=True)
class WaitRule:
    """What a wait means, who ends it, and by which ``command`` (empty if by none).

    ``is_looked_at``: the key is looked at again automatically; otherwise only the command or a new
    event brings it back. ``may_be_accepted``: a person may accept one finding that waits for this,
    whatever its kind.
    """

    means: str
    ends: Ends
    command: str = ""
    is_looked_at: bool = True
    may_be_accepted: bool = False

    def __str__(self) -> str:
        command = f": `{self.command}`" if self.command else ""
        return f"{self.means}; {self.ends} ends this{command}"


RULES: Mapping[Wait, WaitRule] = {
    Wait.HOLD: WaitRule(
        "its key is on hold",
        Ends.PERSON,
        "reconcile findings --release KEY",
        is_looked_at=False,
    ),
    Wait.PAUSE: WaitRule("a person has paused repairs", Ends.TIME, "reconcile resume --pause NAME"),
    Wait.PILOT: WaitRule(
        "the pilot names others, or `repair.only_pilot` is set and no pilot runs",
        Ends.TIME,
        "reconcile pilot",
    ),
    Wait.OWN_KEYSPACE: WaitRule(
        "our keyspace is not as it was left", Ends.PERSON, "reconcile resume --own-keyspace"
    ),
    Wait.PAUSES_UNKNOWN: WaitRule(
        "our keyspace was too slow to read whether repairs are paused", Ends.STREAM
    ),
    Wait.BREAKER: WaitRule(
        "a breaker is open: more was found than is believable",
        Ends.PERSON,
        "reconcile resume --breaker NAME",
    ),
    Wait.COMMAND: WaitRule(
        "it is repaired while James is offline, or merged by James",
        Ends.PERSON,
        "reconcile mailboxes",
    ),
    Wait.DECISION: WaitRule(
        "a person has to decide", Ends.PERSON, "reconcile findings --accept KEY"
    ),
    Wait.BEHIND: WaitRule(
        "the stream is behind, so an event that matters may still come",
        Ends.STREAM,
        may_be_accepted=True,
    ),
    Wait.CEILING: WaitRule("this minute has had its repairs", Ends.STREAM),
    Wait.CLOCKS: WaitRule("clocks differ by half the delay or more", Ends.STREAM),
    Wait.FAST_WRITERS: WaitRule(
        "many keys were written by clocks that are ahead by more than half the delay", Ends.STREAM
    ),
    Wait.TABLE: WaitRule("its table refuses writes", Ends.STREAM),
    Wait.ROW: WaitRule("its table takes other writes and refuses this one", Ends.STREAM),
    Wait.LOOK: WaitRule("a person has asked for the next look", Ends.STREAM),
    Wait.OBSERVING: WaitRule(
        "the stream observes only", Ends.PERSON, "reconcile stream --mode repair"
    ),
    Wait.CHANGES: WaitRule("the counter changes while it is counted", Ends.STREAM),
    Wait.MESSAGES_DIFFER: WaitRule(
        "messages that the counter counts differ from the truth", Ends.STREAM
    ),
    Wait.LISTING_INCOMPLETE: WaitRule(
        "the list that is counted may lack rows", Ends.PERSON, "reconcile sweep"
    ),
    Wait.OWNER: WaitRule("the owner of a mailbox is in doubt", Ends.STREAM),
    Wait.OTHER_TABLE: WaitRule("James may write another table by now", Ends.STREAM),
    Wait.NODE_AWAY: WaitRule("a node is down, or was a short time ago", Ends.STREAM),
    Wait.LEASE: WaitRule("another process may hold the lease", Ends.STREAM),
}
