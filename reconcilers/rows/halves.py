"""What fails for one key is that key's: many are read at once, and in halves where that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconcilers.words.errors import ReadFailed, Refused

MOST_UNREADABLE = 50
"""So many of one read are rows; more are a node, or a disk."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class InHalves(Generic[Key, Answer]):
    """The answers of all parts that were read, in order, and each key that could not, with why."""

    answers: tuple[Answer, ...] = ()
    unreadable: tuple[tuple[Key, str], ...] = ()


def in_halves(
    keys: Sequence[Key], read: Callable[[Sequence[Key]], Answer], read_nothing: Callable[[], object]
) -> InHalves[Key, Answer]:
    """Read all; where the server answers that it cannot, halves, down to the key that fails.

    ``read_nothing`` reads in the same way what no row has: where that fails too, it is not a key
    but the table or the server, and its error is raised. So is any other error than `ReadFailed`
    and `Refused`, and the last one when more than `MOST_UNREADABLE` keys fail.
    """
    answers: list[Answer] = []
    unreadable: list[tuple[Key, str]] = []
    waiting = [keys] if keys else []
    asked = False
    while waiting:
        some = waiting.pop()
        try:
            answers.append(read(some))
        except (ReadFailed, Refused) as failed:
            if not asked:
                read_nothing()
                asked = True
            if len(some) == 1:
                unreadable.append((some[0], str(failed)))
                if len(unreadable) > MOST_UNREADABLE:
                    raise
                continue
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
    return InHalves(tuple(answers), tuple(unreadable))
