"""Undo over the model of Cassandra's cells: the row is as before, and whatever is newer stays.

Each seed makes a truth and a projection that differ, lets the product plan the repair, carries it
out, and undoes it; in between a user may write, also between two tries whose finding was retried
by a person or reported.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from reconcilers.declared.writes import Write
from reconcilers.rows.compare import compare
from reconcilers.rows.confirm import Moment
from reconcilers.rows.decision import retried
from reconcilers.rows.finding import Finding, State, newer_than_ours
from reconcilers.rows.plan import plan
from reconcilers.rows.undo import AS_BEFORE, stands, together, tries_of, undo
from reconcilers.words.model import Kind, Report, Row, Value
from tests.builders.findings import finding
from tests.builders.rows import (
    COMPLETE,
    DELAY,
    FAMILY,
    LONG_AGO,
    MESSAGE_ID,
    MOMENT,
    NOW,
    PROJECTION,
    SLOT,
    seen,
    truth,
)
from tests.builders.slots import mailbox_of, uid_of
from tests.property.cells import Delete, Statement, Table, Update, statement_of

SEEDS = 1500
KEY = (mailbox_of(SLOT), uid_of(SLOT))
CELLS: dict[str, tuple[Value, ...]] = {
    "messageid": (MESSAGE_ID,),
    "modseq": (7, 8, 9),
    "flagseen": (True, False),
    "flaguser": (True, False, None),
    "headercontent": ("a", "b", None),
}
FLAGS = ("one", "two", "three")


def some_flags(dice: random.Random) -> frozenset[str]:
    return frozenset(flag for flag in FLAGS if dice.random() < 0.5)


def table() -> Table:
    columns = tuple(each for each in PROJECTION.columns if each != "userflags")
    return Table(PROJECTION.key, columns, ("userflags",))


LATER = MOMENT.after(DELAY)


def written(dice: random.Random, earliest: int, span: int, whole: float) -> Iterable[Statement]:
    """A few updates of the row by the mail server, of all its cells or of some; modseq always."""
    for _ in range(dice.randint(1, 3)):
        names = [name for name in CELLS if name == "modseq" or dice.random() < whole]
        cells = {name: dice.choice(CELLS[name]) for name in names}
        flags = some_flags(dice)
        yield Update(KEY, earliest + dice.randint(1, span), cells, added={"userflags": flags})


def hidden(dice: random.Random) -> Statement:
    """A tombstone later than all that shows; its time cannot be read, so a first try is hidden."""
    at = LONG_AGO + dice.randint(20, 29)
    if dice.random() < 0.3:
        return Delete(KEY, at)
    return Update(KEY, at, {dice.choice(("flagseen", "headercontent")): None})


def a_truth(dice: random.Random) -> Row:
    cells = {**COMPLETE, "userflags": some_flags(dice)}
    cells |= {"flagseen": dice.choice((True, False)), "modseq": dice.choice((8, 9))}
    at = LONG_AGO + dice.randint(1, 9)
    return truth(cells, at=at)


def some_truths(dice: random.Random) -> tuple[Row, ...]:
    return (a_truth(dice),) if dice.random() < 0.8 else ()


def repaired(dice: random.Random, rows: Table) -> tuple[Finding, ...]:
    """The tries of one finding, written, oldest first; none where nothing differs, or may be."""
    if dice.random() < 0.8:
        for each in written(dice, LONG_AGO, 9, dice.choice((0.5, 1.0))):
            rows.apply(each)
    if dice.random() < 0.3:
        rows.apply(hidden(dice))
    truths = some_truths(dice)
    first = tried(rows, truths, dice.choice((0, 1)))
    again = tried(rows, truths, 1, first)
    return first + again


def tried(
    rows: Table,
    truths: tuple[Row, ...],
    attempt: int,
    before: tuple[Finding, ...] = (),
    moment: Moment = MOMENT,
) -> tuple[Finding, ...]:
    """What the product would write now, written: another try if the last one did not hold."""
    looked = seen(rows.read(KEY), *truths)
    difference = compare(FAMILY, PROJECTION, looked)
    if difference is None or difference.kind not in {
        Kind.MISSING_ROW,
        Kind.DIFFERING_CELLS,
        Kind.EXTRA_ROW,
    }:
        return ()
    if any(newer_than_ours(each, difference, looked) for each in before):
        return ()
    writes = plan(PROJECTION, looked, difference, moment, attempt)
    if isinstance(writes, Report):
        return ()
    applied(rows, writes)
    kind = difference.kind
    return (finding(State.VERIFIED, kind=kind, before=looked.actual, writes=writes),)


def repairs(
    seeds: Iterable[int],
) -> Iterator[tuple[int, random.Random, Table, tuple[Finding, ...]]]:
    """Each seed with which something was repaired; its dice go on."""
    for seed in seeds:
        dice, rows = random.Random(seed), table()
        if tries := repaired(dice, rows):
            log = [replace(each, state=State.INTENDED) for each in reversed(tries)]
            assert len(tries_of(tries[-1], log)) == len(tries), f"seed {seed}"
            yield seed, dice, rows, tries


def flags_of(row: Row | None) -> frozenset[str]:
    flags = row.get("userflags") if row is not None else None
    return flags if isinstance(flags, frozenset) else frozenset()


def applied(rows: Table, writes: Iterable[Write]) -> None:
    for write in writes:
        rows.apply(statement_of(write))


def a_user(dice: random.Random, now: int = NOW) -> Statement:
    """One who writes, or deletes, now."""
    at = now + dice.randint(1, 9)
    if dice.random() < 0.25:
        return Delete(KEY, at)
    return next(iter(written(dice, at, 1, 0.6)))


@pytest.mark.parametrize("part", range(3))
def test_the_row_is_as_it_was_before_the_repair(part: int) -> None:
    done: set[tuple[Kind, int]] = set()
    for seed, _, rows, tries in repairs(range(part * SEEDS, (part + 1) * SEEDS)):
        repair = together(tries)
        writes = undo(tries, rows.read(KEY))
        if isinstance(writes, str):
            assert writes == AS_BEFORE, f"seed {seed}: {writes}"  # behind a tombstone: no effect
            continue
        applied(rows, writes)
        now = rows.read(KEY)
        assert stands(repair, now), f"seed {seed}"
        before = tries[0].before
        assert (now and dict(now.cells)) == (before and dict(before.cells)), seed
        assert undo(tries, now) == AS_BEFORE, f"seed {seed}: it could be undone twice"
        done.add((repair.kind, len(tries)))
    once = {(each, 1) for each in (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)}
    assert done == once | {(Kind.DIFFERING_CELLS, 2), (Kind.MISSING_ROW, 2)}


def test_after_a_users_write_it_is_refused() -> None:
    refused = 0
    for seed, dice, rows, tries in repairs(range(SEEDS)):
        left = rows.read(KEY)
        rows.apply(a_user(dice))
        if rows.read(KEY) != left:
            assert isinstance(undo(tries, rows.read(KEY)), str), f"seed {seed}"
            refused += 1
    assert refused > SEEDS / 10


def test_a_users_write_between_the_read_and_the_undo_stays() -> None:
    raced = 0
    for seed, dice, rows, tries in repairs(range(SEEDS)):
        writes = undo(tries, rows.read(KEY))
        if isinstance(writes, str):
            continue
        user = a_user(dice)
        rows.apply(user)
        applied(rows, writes)
        now = rows.read(KEY)
        if isinstance(user, Delete):
            assert now is None, f"seed {seed}"
        elif isinstance(user, Update):
            for name, value in user.cells.items():
                assert (now and now.get(name)) == value, f"seed {seed}: {name}"
            assert user.added["userflags"] <= flags_of(now), f"seed {seed}"
        raced += 1
    assert raced > SEEDS / 10


# --- a user who writes between two tries ---------------------------------------------------------


def cleared(dice: random.Random, first: Finding) -> tuple[Finding, ...]:
    """The log (newest first) of a finding that was retried or reported: its writes are cleared."""
    intended = replace(first, state=State.INTENDED)
    if dice.random() < 0.5:
        incomplete, reported = Kind.INCOMPLETE_TRUTH_ROW, State.REPORTED
        return replace(first, kind=incomplete, state=reported, before=None, writes=()), intended
    stuck = replace(first, state=State.STUCK)
    return retried(stuck, NOW), stuck, intended


def written_between(dice: random.Random, rows: Table) -> tuple[tuple[Finding, ...], Row | None]:
    """The log (newest first) of two tries with a user's write in between, and the row it left.

    The log is empty if one of the two had nothing to repair.
    """
    for each in written(dice, LONG_AGO, 9, 0.5) if dice.random() < 0.6 else ():
        rows.apply(each)
    for first in tried(rows, some_truths(dice), 0):
        rows.apply(a_user(dice, MOMENT.horizon))
        left = rows.read(KEY)
        for last in tried(rows, some_truths(dice), dice.choice((0, 1)), moment=LATER):
            return (last, replace(last, state=State.INTENDED), *cleared(dice, first)), left
    return (), None


def test_what_a_user_wrote_between_two_tries_is_back_after_the_undo() -> None:
    undone: Counter[tuple[Kind, Kind]] = Counter()
    for seed in range(2 * SEEDS):
        dice, rows = random.Random(seed), table()
        log, left = written_between(dice, rows)
        if not log:
            continue
        writes = undo(tries_of(log[0], log[1:]), rows.read(KEY))
        if isinstance(writes, str):
            assert writes == AS_BEFORE, f"seed {seed}: {writes}"  # behind a tombstone: no effect
            continue
        applied(rows, writes)
        now = rows.read(KEY)
        assert (now and dict(now.cells)) == (left and dict(left.cells)), f"seed {seed}"
        undone[log[-1].kind, log[0].kind] += 1
    repaired = (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)
    assert undone.keys() == set(product(repaired, repaired))
