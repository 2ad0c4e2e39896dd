"""CPU time of one worker's look, a row: seconds long, without a stack, also on a busy machine."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from tests.bench.look_alone import KEPT, KEYSPACE, OWN, VARIANTS, Spent, Worker, share_of, working
from tests.bench.report import publish, table
from tests.builders.mail_rows import fake_tables, lineage_rows, rows_by_table, truth_rows
from tests.fakes.cql_server import serving

pytestmark = pytest.mark.bench

ROWS, MAILBOXES, ROUNDS = 10_000, 50, 3


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Worker]]:
    """One for each of `KEPT`, at the same server; a real one has no rows of a server in memory."""
    truth = truth_rows(ROWS, MAILBOXES)
    rows = rows_by_table(truth) | lineage_rows(truth)
    share = share_of(truth)
    with ExitStack() as stack:
        port = stack.enter_context(serving(list(fake_tables(KEYSPACE, OWN, rows))))
        del truth, rows
        yield {
            kept: stack.enter_context(working(port, names, share)) for kept, names in KEPT.items()
        }


def test_the_look_alone(workers: dict[str, Worker]) -> None:
    for worker in workers.values():
        for look in VARIANTS.values():  # once unmeasured: statements prepared, answers known
            found = look(worker)
            assert (found.examined, found.suspects, found.unresolved) == (ROWS, [], 0)
            assert sum(found.changes.values()) >= ROWS
    looks = {(kept, name): Spent() for kept in workers for name in VARIANTS}
    parts = {(kept, part): Spent() for kept in workers for part in ("driver", "wakes")}
    for _ in range(ROUNDS):
        for kept, worker in workers.items():
            for name, look in VARIANTS.items():
                looks[kept, name].of(partial(look, worker))
            parts[kept, "driver"].of(worker.reads)
            parts[kept, "wakes"].of(worker.wakes)
    publish(
        "The look alone, without servers",
        f"CPU time of one process, µs a row: {ROWS:,} rows of {MAILBOXES} mailboxes, two keys a"
        f" row, lineage filled, all rows equal; best of {ROUNDS} rounds.",
        _parts(looks, parts),
        "Ways to do the same look, compared in one run (ratio: the median of the rounds'):",
        _ratios(looks),
    )


def _parts(looks: dict[tuple[str, str], Spent], parts: dict[tuple[str, str], Spent]) -> str:
    first = next(iter(VARIANTS))
    whole = {kept: looks[kept, first].micros(ROWS) for kept in KEPT}
    driver = {kept: parts[kept, "driver"].micros(ROWS) for kept in KEPT}
    wakes = {kept: parts[kept, "wakes"].micros(ROWS) for kept in KEPT}
    collector = {kept: looks[kept, first].collector_micros(ROWS) for kept in KEPT}
    rest = {kept: whole[kept] - driver[kept] - wakes[kept] for kept in KEPT}
    lines = {
        "driver: reads sent, rows decoded": driver,
        "wakes from Arrow": wakes,
        "the rest: rows, compare, lineage": rest,
        "whole look": whole,
        "… of which garbage collector": collector,
    }
    return table(
        ("µs a row", *KEPT),
        [(name, *(spent[kept] for kept in KEPT)) for name, spent in lines.items()],
    )


def _ratios(looks: dict[tuple[str, str], Spent]) -> str:
    first = next(iter(VARIANTS))
    lines = []
    for name in VARIANTS:
        spent = [looks[kept, name].micros(ROWS) for kept in KEPT]
        ratios = [looks[kept, name].ratio_to(looks[kept, first]) for kept in KEPT]
        lines.append((name, *spent, *ratios))
    return table(("µs a row", *KEPT, *(f"ratio, {kept}" for kept in KEPT)), lines)
