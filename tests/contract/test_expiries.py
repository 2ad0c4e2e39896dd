"""The expiries' contract: the same for the fake and for Cassandra."""

import time
import uuid

import pytest

from checkpoints.cassandra import CassandraExpiries, Store
from checkpoints.expiries import Expiries, Expiry
from reconcilers.words.model import Slot
from tests.contract.making import HOUR, an_hour_of_its_own
from tests.fakes.checkpoints.memory import MemoryExpiries

SECOND = 1_000_000


@pytest.fixture
def expiries(real: Store | None) -> Expiries:
    return MemoryExpiries() if real is None else CassandraExpiries(real)


@pytest.fixture
def soon() -> int:
    return an_hour_of_its_own()


def expiry(due: int) -> Expiry:
    return Expiry(Slot(uuid.uuid4(), 7), uuid.uuid4(), due)


def test_what_is_due_comes_once_in_order(expiries: Expiries, soon: int) -> None:
    first, second, third = expiry(soon), expiry(soon + HOUR), expiry(soon + HOUR + 1)
    expiries.expect([third, first])
    expiries.expect([second, first])
    assert list(expiries.between(soon - 1, soon + 2 * HOUR)) == [first, second, third]
    assert list(expiries.between(soon, soon + HOUR)) == [second]
    assert list(expiries.between(soon + HOUR, soon + HOUR)) == []


def test_an_hour_is_many_partitions(kind: str, request: pytest.FixtureRequest, soon: int) -> None:
    if kind == "memory":
        pytest.skip("the fake has no partitions")
    store = request.getfixturevalue("store")
    CassandraExpiries(store).expect([expiry(soon + minute * 60 * SECOND) for minute in range(60)])
    counting = store.prepare("SELECT count(*) FROM $ks.expiries WHERE minute = ?")
    found = [
        next(store.rows("counting", counting, soon // (60 * SECOND) + minute))[0]
        for minute in range(60)
    ]
    assert found == [1] * 60


def test_a_key_may_expire_twice_and_name_no_message(expiries: Expiries, soon: int) -> None:
    nameless = Expiry(Slot(uuid.uuid4(), 7), None, soon)
    later = Expiry(nameless.slot, None, soon + 5)
    expiries.expect([nameless, later])
    assert list(expiries.between(soon - 1, soon + 5)) == [nameless, later]


def test_what_is_due_already_is_kept_for_a_stream_that_was_away(expiries: Expiries) -> None:
    past = expiry(time.time_ns() // 1000 - 5 * SECOND)
    expiries.expect([past])
    assert past in list(expiries.between(past.due - 1, past.due))
