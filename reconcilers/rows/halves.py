"""Reads of many keys at once, in halves if a read fails, down to the failing key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconcilers.words.errors import MalformedContent, ReadFailed, Refused

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
    are raised, and the last one if more than `MOST_UNREADABLE` keys fail. `MalformedContent` is the
    fault of no table and no server: it does not count for either.
    """
    answers: list[Answer] = []
    unreadable: list[tuple[Key, str]] = []
    waiting = [keys] if keys else []
    asked, failing = False, 0
    while waiting:
        some = waiting.pop()
        try:
            answers.append(read(some))
        except (ReadFailed, Refused) as failed:
            is_read = isinstance(failed, MalformedContent)
            if not asked and not is_read:
                read_nothing()
                asked = True
            if len(some) == 1:
                unreadable.append((some[0], str(failed)))
                failing += not is_read
                if failing > MOST_UNREADABLE:
                    raise
                continue
            middle = len(some) // 2
            waiting += [some[middle:], some[:middle]]
    return InHalves(tuple(answers), tuple(unreadable))
