"""Reads of many keys at once, in halves if a read fails, down to the failing key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconcilers.words.errors import ReadFailed, Refused

MOST_UNREADABLE = 50
"""Up to this many keys of one read count as unreadable rows; more are a node, or a disk."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class InHalves(Generic[Key, Answer]):
    """The answers of all parts that were read, in order, and each failing key with the reason."""

    answers: tuple[Answer, ...] = ()
    unreadable: tuple[tuple[Key, str], ...] = ()


def in_halves(
    keys: Sequence[Key], read: Callable[[Sequence[Key]], Answer], read_nothing: Callable[[], object]
) -> InHalves[Key, Answer]:
    """Read all keys. If the server reports that it cannot, read halves, down to the failing key.

    ``read_nothing`` reads a key that no row has, in the same way. If that fails too, the table or
    the server is the cause, and its error is raised. Errors other than `ReadFailed` and `Refused`
    are raised, and the last one if more than `MOST_UNREADABLE` keys fail.
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
