"""What mail servers count: changes as James derives them from what users do, given by a seed."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from deploy.mailserver.counters import MAILBOX_COUNTERS, counter_write
from deploy.mailserver.history import CounterWrite
from deploy.mailserver.mail import Change, Content, Flags, Message
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import new_timeuuid

OPERATIONS, SHARES = ("append", "flags", "expunge"), (5, 3, 2)
SEEN, UNSEEN = Flags(frozenset({"seen"})), Flags()
MARKS = 31
"""Changes of one mailbox whose marks fit into a bigint, two bits each."""


@dataclass(frozen=True)
class Shape:
    """Among how many mailboxes the changes are spread."""

    name: str
    mailboxes: int


HOT, MANY = Shape("one hot mailbox", 1), Shape("fifty mailboxes", 50)


def new_mailboxes(number: int) -> list[UUID]:
    """Ids that no run has used yet."""
    return [new_timeuuid() for _ in range(number)]


def changes(seed: int, mailboxes: Sequence[UUID]) -> Iterator[CounterWrite]:
    """One writer's changes, without end: it appends, flags and expunges messages of its own."""
    chance = random.Random(seed)
    content = random_content(chance)
    messages: list[Message] = []
    while True:
        (what,) = chance.choices(OPERATIONS, SHARES) if messages else ("append",)
        if what == "append":
            change = Change(what, None, _arrived(chance, content, chance.choice(mailboxes)))
            messages.append(change.message)
        else:
            place = chance.randrange(len(messages))
            messages[place], messages[-1] = messages[-1], messages[place]
            before = messages.pop()
            change = Change(what, before, _flagged(before) if what == "flags" else None)
            messages += [change.after] if change.after else []
        write = counter_write(MAILBOX_COUNTERS, change, change.message.mailboxid)
        if write is not None:
            yield write


def marked(seed: int, mailboxes: Sequence[UUID]) -> list[CounterWrite]:
    """`MARKS` changes of each mailbox, one after the other, that can be told apart in the sum.

    The n-th of a mailbox adds 4**n to ``count``: the sum's n-th digit to the base of 4 is how often
    it was counted (up to three times). What it adds to ``unseen`` is as James has it.
    """
    found = []
    for number, mailboxid in enumerate(mailboxes):
        first = itertools.islice(changes(seed + number, [mailboxid]), MARKS)
        for place, write in enumerate(first):
            found.append(replace(write, added={**write.added, "count": 4**place}))
    return found


def _arrived(chance: random.Random, content: Content, mailboxid: UUID) -> Message:
    flags = SEEN if chance.random() < 0.2 else UNSEEN
    return Message(content, mailboxid, uid=1, modseq=1, flags=flags)


def _flagged(message: Message) -> Message:
    return replace(message, flags=UNSEEN if message.flags == SEEN else SEEN)
