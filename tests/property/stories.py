"""Histories of one mailbox, told step by step, and what must have become of one of its rows.

A test that a rule keeps right names that rule by `BrokenRules.kept_by`: it must fail without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar, cast
from uuid import UUID

import pytest

from reconcilers.rows.finding import State
from reconcilers.words.errors import Refused
from reconcilers.words.model import KeyValue, Kind, Slot
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import ContentReads, Contents
from tests.property.cells import Delete
from tests.property.mail import FAMILY, MAILBOXES, SECOND, Climate, Fate, World
from tests.property.races import CLIMATES, Run

CLIMATE = CLIMATES[0]
INBOX = MAILBOXES[0]
WITH_CONTENT = replace(FAMILY, truth=replace(FAMILY.truth, contents=("messagev2", "messagev3")))


def asking(content: ContentReads) -> type[Confirmer]:
    """A confirmer that asks for content, as in production."""
    return cast(type[Confirmer], partial(_asking, content))


def _asking(content: ContentReads, *parts: object, **rules: object) -> Confirmer:
    plain = Confirmer(*parts, **rules)  # type: ignore[arg-type]
    asked = Contents(WITH_CONTENT, plain.tables, content, plain.delay)
    return replace(plain, contents=asked)


@dataclass
class JamesContent:
    """What James has content of: messages of the truth, and those not deleted yet."""

    world: World
    not_deleted_yet: set[KeyValue] = field(default_factory=set)
    refused: bool = False

    def having_owner(self, _sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        return ()

    having_user = having_owner

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        if self.refused:
            raise Refused("no SELECT permission on messagev2")
        return {
            each for each in sources if each in self.not_deleted_yet or self.world.truth_rows(each)
        }


@dataclass
class Story(Run):
    """A run without a script: each step is called by its name."""

    climate: Climate = CLIMATE

    def __post_init__(self) -> None:
        super().__post_init__()
        self.world.pass_time(SECOND)

    def with_content(self) -> JamesContent:
        """From now on content is asked for."""
        content = JamesContent(self.world)
        self.confirmer = asking(content)
        return content

    # --- users

    def added(self, message: UUID | None = None, fate: Fate = Fate.PROMPT) -> Slot:
        """Append a message to the inbox: a new one, or one that there is."""
        self.world.append(INBOX, message, 0, fate)
        return list(self.world.slots)[-1]

    def copied(self, slot: Slot) -> Slot:
        """Copy a message within the inbox."""
        return self.added(self.world.slots[slot])

    def added_and_seen(self) -> Slot:
        """Append a new message; all of it arrives, and is looked at."""
        slot = self.added()
        self.look_later(slot)
        return slot

    def message_with_copy(self) -> tuple[Slot, Slot]:
        """A message that was copied within the inbox; both rows have arrived."""
        first = self.added()
        self.world.pass_time(SECOND)
        copy = self.copied(first)
        self.settle()
        return first, copy

    def expunge(self, slot: Slot, fate: Fate = Fate.PROMPT, clock: int = 0) -> None:
        """Delete a row on both sides; ``fate`` is that of the listing's delete."""
        self.world.expunge(slot, clock, fate, Fate.PROMPT)

    def lose_true(self, slot: Slot) -> None:
        """The truth no longer has the row, and no event tells of that."""
        gone = Delete((self.world.slots[slot], *slot.key), self.world.now)
        self.world.truth.apply(gone)

    # --- the reconciler

    def settle(self) -> None:
        """Everything arrives and is heard."""
        self.world.pass_time(3 * self.climate.delay)

    def look_at(self, *slots: Slot) -> None:
        """Now: one batch for each slot."""
        for slot in slots:
            self.execute(self.batch_of([slot]))

    def look_later(self, *slots: Slot, times: int = 1) -> None:
        """Look when everything has arrived; an absence without a delete needs two such looks."""
        for _ in range(times):
            self.settle()
            self.look_at(*slots)

    # --- what became of a row

    def is_there(self, slot: Slot) -> bool:
        """Whether the listing has the row."""
        return self.row(slot) is not None

    def kind_reported(self, slot: Slot) -> Kind | None:
        """The class under which the row waits for a person."""
        finding = self.finding(slot)
        return finding.kind if finding is not None and finding.state is State.REPORTED else None

    def goes(self, slot: Slot, looks: int = 1) -> None:
        """Assert that later looks remove the row."""
        self.look_later(slot, times=looks)
        assert not self.is_there(slot)

    def stays(self, slot: Slot, kind: Kind | None = None, looks: int = 1) -> None:
        """Assert that later looks leave the row there, and that it is reported as ``kind``."""
        for _ in range(looks):
            self.look_later(slot)
            assert self.is_there(slot)
        if kind is not None:
            assert self.kind_reported(slot) is kind


Test = TypeVar("Test", bound=Callable[[Story], None])


class Broken(NamedTuple):
    """A rule, what stands in its place, and a test that holds by that rule."""

    where: object
    name: str
    rule: object
    holds: Callable[[Story], None]

    def put_in_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Break the rule."""
        monkeypatch.setattr(self.where, self.name, self.rule)

    def is_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Assert that the test fails without the rule."""
        self.put_in_place(monkeypatch)
        self.fails()

    def fails(self) -> None:
        """Assert that the test fails by now."""
        with pytest.raises(AssertionError):
            self.holds(Story())

    def __str__(self) -> str:
        return f"{self.name}-{self.holds.__name__}"


class BrokenRules(list[Broken]):
    """The rules of one module."""

    def kept_by(self, where: object, name: str, rule: object) -> Callable[[Test], Test]:
        """Say of a test which rule it holds by: ``rule`` in its place must fail it."""

        def noted(test: Test) -> Test:
            self.append(Broken(where, name, rule, test))
            return test

        return noted
