"""The product's look against the same look one row at a time, in one run."""

import time
from collections.abc import Sequence
from itertools import islice

import pytest

from checkpoints.clock import now_micros
from reconcilers.words.model import Wake
from streaming.pipeline.worker import KEYS_AT_ONCE
from streaming.settings import load
from streaming.steps.look import Look
from streaming.tables import Tables, connect
from tests.bench.conftest import Filled
from tests.bench.pieces import Forgetful, bound
from tests.bench.report import publish, table

pytestmark = pytest.mark.bench

TOGETHER, ONE_BY_ONE = 20_000, 2_000
LEAST = 4.0


def test_a_look_together_is_faster_than_row_by_row(filled: Filled) -> None:
    settings = load(filled.config)
    session, family = connect(settings.cassandra), bound(settings)
    look = Look(
        family,
        Tables(session, settings.cassandra, family),
        Forgetful(),
    )
    rows = session.execute(
        f"SELECT mailboxid, messageid, uid FROM {filled.keyspace}.messageidtable"
    )
    wakes = [
        Wake((row["mailboxid"], row["uid"]), row["messageid"], from_truth=True)
        for row in islice(rows, TOGETHER)
    ]
    _rate(look, wakes[:ONE_BY_ONE], KEYS_AT_ONCE)  # statements prepared, caches warm
    single = _rate(look, wakes[:ONE_BY_ONE], 1)
    together = _rate(look, wakes, KEYS_AT_ONCE)
    publish(
        "Ratio to a look row by row",
        f"One process, the same code, without lineage. Together is"
        f" **{together / single:.1f}** times as fast; the test asks for at least {LEAST:g}.",
        table(
            ("look", "rows", "rows/s"),
            [
                ("one row at a time", ONE_BY_ONE, round(single)),
                (f"{KEYS_AT_ONCE:,} keys together", len(wakes), round(together)),
            ],
        ),
    )
    assert together / single >= LEAST


def _rate(look: Look, wakes: Sequence[Wake], at_once: int) -> float:
    began = time.monotonic()
    for start in range(0, len(wakes), at_once):
        found = look.at(wakes[start : start + at_once], now_micros())
        assert not found.suspects
    return len(wakes) / (time.monotonic() - began)
