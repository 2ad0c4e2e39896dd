"""A query that dies again and again is given a new process, but not for what a server does."""

import pytest

from reconcilers.words.errors import EndedItself
from streaming.pipeline.deaths import DIES_FOR, Deaths
from streaming.pipeline.failures import ALONE_FOR

SPARKS = "java.nio.file.NoSuchFileException: /var/lib/reconciler/temporary/blockmgr-1"
OF_SERVERS = [
    "reconcilers.words.errors.Unreachable: reading lineage: no host answered",
    "reconcilers.words.errors.Overloaded: not now",
    "reconcilers.words.errors.ReadFailed: too many tombstones",
    "reconcilers.words.errors.Refused: reading the truth: Unauthorized",
    "kafka.errors.NoBrokersAvailable: NoBrokersAvailable",
    "Caused by: org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired",
]


def test_it_ends_the_process_when_it_has_died_for_too_long() -> None:
    deaths = Deaths()
    for at in (5.0, 6.0, 5.0 + DIES_FOR):
        deaths.count(SPARKS, at)
    assert deaths.number == 3
    with pytest.raises(EndedItself, match=r"died for 1801 s and ended no batch: java\.nio"):
        deaths.count(SPARKS, 6.0 + DIES_FOR)


@pytest.mark.parametrize("why", OF_SERVERS)
def test_however_long_a_server_is_away_or_refuses_it_waits(why: str) -> None:
    deaths = Deaths()
    for hour in range(100):
        deaths.count(why, 3_600.0 * hour)
    assert deaths.number == 100


def test_what_it_dies_of_afterwards_counts_from_then_on() -> None:
    deaths = Deaths()
    deaths.count(SPARKS, 0.0)
    deaths.count(OF_SERVERS[0], 10.0)
    deaths.count(SPARKS, 2 * DIES_FOR)
    deaths.count(SPARKS, 3 * DIES_FOR)
    with pytest.raises(EndedItself):
        deaths.count(SPARKS, 3 * DIES_FOR + 1)


def test_a_record_that_kills_it_is_given_up_sooner() -> None:
    assert 2 * ALONE_FOR / 1_000_000 < DIES_FOR
