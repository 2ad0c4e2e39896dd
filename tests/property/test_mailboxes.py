"""Mailboxes are created, renamed and deleted while both tables are looked at, in any interleaving.

As long as James loses no write, and each of its operations ends within D, two looks D apart report
nothing. Both of James's orders of a rename are played: that of 3.8, which deletes the old path
before it rewrites the mailbox, and that of 2026, which deletes it last.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from reconcilers.mailboxes.conflicts import ConflictKind, standing
from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides, Unpaired
from tests.builders.mailboxes import P, Q, R

Operation = Iterator[None]
PLACES = (P, Q, R)
LIVES = 1_500


@dataclass
class James:
    """Both tables. Each operation is a generator: a step is one read or write of one row."""

    chance: random.Random
    mailboxes: dict[UUID, MailboxRow] = field(default_factory=dict)
    paths: dict[MailboxPath, PathRow] = field(default_factory=dict)
    busy: set[UUID] = field(default_factory=set)
    number: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    deletes_last: bool = False

    def begin(self) -> Operation:
        """A random operation; no two of one mailbox at a time."""
        idle = sorted(self.mailboxes.keys() - self.busy)
        if not idle or self.chance.random() < 0.3:
            return self.create(self.chance.choice(PLACES))
        id_ = self.chance.choice(idle)
        self.busy.add(id_)
        if self.chance.random() < 0.3:
            return self.delete(id_)
        return self.rename(id_, self.chance.choice(PLACES))

    def create(self, place: MailboxPath) -> Operation:
        id_ = UUID(int=next(self.number))
        self.busy.add(id_)
        if self._add(place, id_):
            yield
            self._save(id_, place)
        self.busy.discard(id_)
        yield

    def rename(self, id_: UUID, place: MailboxPath) -> Operation:
        before = self.mailboxes[id_].path
        assert before is not None
        yield
        if self._add(place, id_):
            yield
            steps: list[Callable[[], object]] = [
                lambda: self.paths.pop(before),
                lambda: self._save(id_, place),
            ]
            for step in reversed(steps) if self.deletes_last else steps:
                step()
                yield
        self.busy.discard(id_)
        yield

    def delete(self, id_: UUID) -> Operation:
        place = self.mailboxes[id_].path
        assert place is not None
        self.paths.pop(place)
        yield
        del self.mailboxes[id_]
        self.busy.discard(id_)
        yield

    def _add(self, place: MailboxPath, id_: UUID) -> bool:
        if place in self.paths:
            return False
        self.paths[place] = PathRow(place, id_, 1, (next(self.number),))
        return True

    def _save(self, id_: UUID, place: MailboxPath) -> None:
        self.mailboxes[id_] = MailboxRow(id_, place, 1, (next(self.number),))


@dataclass
class World:
    """James at work; time passes between any two reads of ours."""

    james: James
    running: list[Operation] = field(default_factory=list)

    def pass_time(self, most: int = 4) -> None:
        chance = self.james.chance
        for _ in range(chance.randrange(most + 1)):
            if len(self.running) < 3 and chance.random() < 0.5:
                self.running.append(self.james.begin())
            elif self.running:
                self._step(chance.choice(self.running))

    def wait_for_delay(self) -> None:
        """Everything that runs now ends; other operations begin and end meanwhile."""
        before = list(self.running)
        while any(each in self.running for each in before):
            self._step(self.james.chance.choice(before))
            self.pass_time()

    def _step(self, operation: Operation) -> None:
        if operation in self.running and next(operation, self) is self:
            self.running.remove(operation)


def scanned(world: World) -> Unpaired:
    """Both tables read as a whole, as `reconcile mailboxes` does."""
    found = Unpaired()
    for id_ in sorted(world.james.mailboxes):
        world.pass_time()
        if (mailbox := world.james.mailboxes.get(id_)) is not None:
            found.add_mailbox(mailbox)
    for place in PLACES:
        world.pass_time()
        if (path := world.james.paths.get(place)) is not None:
            found.add_path(path)
    return found


def looked_at(world: World, ids: list[UUID], paths_first: bool) -> Sides:
    james, paths = world.james, dict[MailboxPath, PathRow | None]()

    def read_paths() -> None:
        for place in PLACES:
            world.pass_time()
            paths[place] = james.paths.get(place)

    mailboxes = dict[UUID, MailboxRow | None]()
    if paths_first:
        read_paths()
    for id_ in ids:
        world.pass_time()
        mailboxes[id_] = james.mailboxes.get(id_)
    if not paths_first:
        read_paths()
    return Sides(mailboxes, paths)


def reported(seed: int, deletes_last: bool, paths_first: bool) -> list[ConflictKind]:
    """The kinds that a command reports while a random life of three paths goes on."""
    world = World(James(random.Random(seed), deletes_last=deletes_last))
    world.pass_time(30)
    ids = sorted(scanned(world).ids() | world.james.mailboxes.keys())
    first = looked_at(world, ids, paths_first)
    world.wait_for_delay()
    second = looked_at(world, ids, paths_first)
    return [each.kind for each in standing(first, second).conflicts]


@pytest.mark.parametrize("deletes_last", [False, True], ids=["of 3.8", "of 2026"])
def test_no_life_without_a_lost_write_is_reported(deletes_last: bool) -> None:
    for seed in range(LIVES):
        assert reported(seed, deletes_last, paths_first=False) == [], seed


def test_paths_that_are_read_first_report_what_is_in_flight() -> None:
    found = [each for seed in range(LIVES) for each in reported(seed, False, paths_first=True)]
    assert found, "the order of the reads makes no difference in these lives"


def test_one_look_alone_reports_what_is_in_flight() -> None:
    found = list[ConflictKind]()
    for seed in range(50):
        world = World(James(random.Random(seed)))
        world.pass_time(30)
        look = looked_at(world, sorted(world.james.mailboxes), paths_first=False)
        found += [each.kind for each in standing(look, look).conflicts]
    assert found


@pytest.mark.parametrize(
    ("deletes_last", "more"),
    [(False, {ConflictKind.PATH_MISMATCH}), (True, set[ConflictKind]())],
    ids=["of 3.8", "of 2026"],
)
def test_what_an_operation_that_died_has_left_is_reported(
    deletes_last: bool, more: set[ConflictKind]
) -> None:
    """Each operation dies after each of its steps."""
    kinds = set[ConflictKind]()
    for died_after, which in itertools.product(range(5), range(3)):
        james = James(random.Random(0), deletes_last=deletes_last)
        for _ in james.create(P):
            pass
        (id_,) = james.mailboxes
        operation = (james.create(Q), james.rename(id_, Q), james.delete(id_))[which]
        for _ in range(died_after):
            next(operation, None)
        look = Sides(
            {UUID(int=number): james.mailboxes.get(UUID(int=number)) for number in range(9)},
            {place: james.paths.get(place) for place in PLACES},
        )
        kinds |= {each.kind for each in standing(look, look).conflicts}
    usual = {ConflictKind.ORPHAN_PATH, ConflictKind.MISSING_PATH, ConflictKind.TWO_PATHS}
    assert kinds == usual | more
