"""Nothing that a message refers to is removed, whatever users do between our reads and writes.

A mail server as James is: it writes references, content and truth row of a new message one after
the other, deletes the truth row, looks whether any is left, and then deletes references and
content. Each step may fall between any two reads of ours; a write of a reference may be lost, and
come late. Messages share attachments, as those of older versions do. An append takes a delay at
most: see docs/attachments.md.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.declared.attachments import ID_AS_TEXT
from reconcilers.declared.writes import DeleteRow, SetCells, Write
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Wake
from tests.builders.attachments import PDF, PNG, REFERENCES, content, reference, reference_place
from tests.builders.rights_ground import Ground
from tests.builders.rows import DELAY, SECOND
from tests.fakes.memory_tables import MemoryTables

Steps = Iterator[None]
LOST, LATE = 0.25, 0.1


@dataclass
class Server:
    """The mail server's tables, and the operations of its users that are under way."""

    chance: random.Random
    clock: Callable[[], Micros]
    rows: dict[Slot, Row] = field(default_factory=dict)
    content: dict[KeyValue, tuple[Row, ...]] = field(default_factory=dict)
    mailboxes: dict[KeyValue, set[int]] = field(default_factory=dict)
    deleted: dict[Slot, Micros] = field(default_factory=dict)
    running: list[Steps] = field(default_factory=list)
    appending: list[tuple[Micros, Steps]] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """A user does something."""
        known = sorted(self.mailboxes, key=str)
        message = self.chance.choice(known) if known else None
        doing = self.chance.choice(["append", "copy", "expunge", "late"])
        doing = "append" if message is None else doing
        if doing == "append":
            number = self.met["append"]  # an id never comes back
            appending = self._append(UUID(int=0x1000 << 64 | 1 << 63 | number))
            self.running.append(appending)
            self.appending.append((self.clock(), appending))
        else:
            self.running.append(getattr(self, f"_{doing}")(message))
        self.met[doing] += 1

    def step(self) -> None:
        """One statement of one operation."""
        if self.running:
            doing = self.chance.choice(self.running)
            if next(doing, doing) is doing:
                self.running.remove(doing)

    def end_appends(self, until: Micros) -> None:
        """End those that would take longer than a delay by then."""
        for began, doing in self.appending:
            if began < until - DELAY:
                for _ in doing:
                    pass
        self.appending = [each for each in self.appending if each[0] >= until - DELAY]

    def names(self, slot: Slot) -> bool:
        """Whether the content of the slot's message names its attachment."""
        message = ID_AS_TEXT.back(slot.key[1])
        stored = self.content.get(message, ())  # type: ignore[arg-type]
        return any(row.get("attachmentidasuuid") == slot.group for row in _named(message, stored))

    def write(self, slot: Slot, cells: dict[str, Any], at: Micros) -> None:
        """What a write with this time leaves; a delete of the same time wins."""
        before = self.rows.get(slot)
        newest = -1 if before is None else before.newest or 0
        if at > max(self.deleted.get(slot, -1), newest):
            key = dict(zip(("attachmentidasuuid", "messageid"), slot.key, strict=True))
            self.rows[slot] = Row({**key, **cells}, {"attachmentid": at})

    def delete(self, slot: Slot, at: Micros) -> None:
        """What a delete with this time leaves."""
        self.deleted[slot] = max(self.deleted.get(slot, -1), at)
        row = self.rows.get(slot)
        if row is not None and (row.newest or 0) <= at:
            del self.rows[slot]

    def _append(self, message: KeyValue) -> Steps:
        named = self.chance.sample([PDF, PNG, "old"], self.chance.randint(0, 3))
        self.mailboxes[message] = set()
        for each in named:
            if self.chance.random() > LOST:
                self._refer(each, message)
            yield
        self.content[message] = (content(*named, at=self.clock()),)
        yield
        self.mailboxes[message] = {0}

    def _copy(self, message: KeyValue) -> Steps:
        found = bool(self.mailboxes[message])
        yield
        if found:
            self.mailboxes[message].add(self.chance.randint(1, 2))

    def _expunge(self, message: KeyValue) -> Steps:
        if not self.mailboxes[message]:
            return
        self.mailboxes[message].pop()
        yield
        if self.mailboxes[message]:
            return
        stored = self.content.get(message, ())
        for row in _named(message, stored):
            yield
            if self.chance.random() > LOST:
                self.delete(REFERENCES.truth.slot_of(row), self.clock())
        yield
        self.content.pop(message, None)

    def _late(self, message: KeyValue) -> Steps:
        """A reference comes that nobody's list names, or that is written again."""
        self._refer(self.chance.choice([PDF, PNG, "old"]), message)
        yield

    def _refer(self, attachment: str, message: KeyValue) -> None:
        row = reference(attachment, message, at=self.clock())
        self.write(reference_place(attachment, message), dict(row.cells), self.clock())


def _named(message: Any, stored: Sequence[Row]) -> tuple[Row, ...]:
    return REFERENCES.truth.rows_of(message, stored)


@dataclass
class ServedTables(MemoryTables):
    """The tables of a server whose users go on between any two statements of ours."""

    server: Server = field(kw_only=True)

    def _go_on(self) -> None:
        if self.server.chance.random() < LATE:
            self.server.begin()
        for _ in range(self.server.chance.randint(0, 2)):
            self.server.step()

    def _truths(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        found: dict[KeyValue, tuple[Row, ...]] = {}
        for each in messageids:
            self._go_on()
            found |= super()._truths([each])
        return found

    def projection_with_times(self, projection: Any, slots: Iterable[Slot]) -> dict[Slot, Row]:
        found: dict[Slot, Row] = {}
        for each in slots:
            self._go_on()
            found |= super().projection_with_times(projection, [each])
        return found

    def apply(self, writes: Sequence[Write]) -> None:
        self._go_on()
        for write in writes:
            if isinstance(write, DeleteRow):
                before = self.server.rows.get(write.slot)
                self.server.delete(write.slot, write.at)
                taken = before is not None and write.slot not in self.server.rows
                assert not (taken and self.server.names(write.slot))
                self.server.met["removed"] += taken
            else:
                assert isinstance(write, SetCells)
                self.server.write(write.slot, dict(write.cells), write.at)
                self.server.met["added"] += 1


@dataclass
class Run:
    """The server, and a reconciler that looks at everything now and then."""

    chance: random.Random

    def __post_init__(self) -> None:
        self.ground = Ground(family=REFERENCES)
        self.server = Server(self.chance, lambda: self.ground.now)
        self.ground.tables = ServedTables(
            truths=self.server.content,
            rows={REFERENCES.listing.name: self.server.rows},
            truth=REFERENCES.truth,
            server=self.server,
        )
        self.ground.having_content = self.having_content  # type: ignore[method-assign]

    def having_content(self, sources: Sequence[KeyValue]) -> set[KeyValue]:
        owned = {each for each in sources if self.server.mailboxes.get(each)}
        self.server.step()
        return owned | {each for each in sources if each in self.server.content}

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            for _ in range(self.chance.randint(0, 3)):
                self.server.begin()
            for _ in range(self.chance.randint(0, 12)):
                self.server.step()
            self.reconcile()

    def end(self) -> None:
        """All operations end, and the reconciler comes to rest."""
        self.chance.random = lambda: 1.0  # type: ignore[method-assign]
        while self.server.running:
            self.server.step()
        for _ in range(6):
            self.reconcile()

    def reconcile(self) -> None:
        """A look at each message and each reference, as a sweep does, and what follows from it."""
        wakes = [Wake((None, None), each) for each in sorted(self.server.content, key=str)]
        wakes += [Wake(each.key, None) for each in sorted(self.server.rows)]
        wakes += self.ground.published
        self.ground.published.clear()
        self.ground.now += self._passes(self.chance.randint(1, 2 * DELAY))
        for looked in self.ground.looks(wakes):
            for suspect in looked.suspects:
                after = self._passes(self.chance.choice([SECOND, DELAY + SECOND]))
                self.ground.settle(suspect, after=after)

    def _passes(self, time: Micros) -> Micros:
        self.server.end_appends(self.ground.now + time)
        return time


def played(seed: int, rounds: int = 12) -> Run:
    run = Run(random.Random(seed))
    run.play(rounds)
    run.end()
    return run


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_no_reference_that_a_message_has_is_removed(seed: int) -> None:
    """Asserted at each removal; at the end each reference has its message, and the other way."""
    run = played(seed)
    server = run.server
    wanted = {
        REFERENCES.truth.slot_of(row)
        for message, stored in server.content.items()
        for row in _named(message, stored)
    }
    extra = server.rows.keys() - wanted
    assert wanted <= server.rows.keys()
    for slot in extra:  # its message has lost its content, and not its place; or has no attachments
        message = ID_AS_TEXT.back(slot.key[1])
        named = _named(message, server.content.get(message, ()))  # type: ignore[arg-type]
        assert not named
        assert server.mailboxes.get(message) or message in server.content  # type: ignore[arg-type]
    reported = {each.slot for each in run.ground.journal.open_findings(REFERENCES)}
    assert extra <= reported


def test_runs_meet_everything() -> None:
    met: Counter[str] = Counter()
    for seed in range(20):
        run = played(seed)
        met += run.server.met
        met.update(str(each.kind) for each in run.ground.journal.open_findings(REFERENCES))
    expected = ("append", "copy", "expunge", "late", "added", "removed", Kind.ABSENT_WITHOUT_DELETE)
    assert not [each for each in expected if met[str(each)] < 3]
