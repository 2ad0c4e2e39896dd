"""What can be said of the Cassandra side without one: errors, buckets, names."""

import uuid
from collections import Counter

import pytest
from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteTimeout,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionShutdown
from cassandra.protocol import (
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    SyntaxException,
)

from checkpoints.cassandra.buckets import BUCKETS, bucket_of
from checkpoints.cassandra.driver_errors import translated
from checkpoints.cassandra.store import checked_name, levels
from reconcilers.words.errors import Misconfigured, Overloaded, ReadFailed, Refused, Unreachable
from reconcilers.words.groups import in_groups

OVERLOADED = OverloadedErrorMessage(0x1001, "overloaded", None)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (NoHostAvailable("nobody", {"a": ConnectionShutdown("gone")}), Unreachable),
        (NoHostAvailable("nobody", {}), Unreachable),
        (NoHostAvailable("nobody", {"a": OVERLOADED}), Overloaded),
        (NoHostAvailable("nobody", {"a": AuthenticationFailed("password")}), Refused),
        (
            NoHostAvailable("nobody", {"a": AuthenticationFailed("x"), "b": OSError("y")}),
            Unreachable,
        ),
        (OperationTimedOut(), Unreachable),
        (ReadTimeout("slow"), Unreachable),
        (WriteTimeout("slow", write_type=0), Unreachable),
        (ConnectionShutdown("gone"), Unreachable),
        (ConnectionRefusedError("no"), Unreachable),
        (Unavailable("two of three"), Overloaded),
        (ReadFailure("without codes"), ReadFailed),
        (ReadFailure("tombstones", error_code_map={"a": 1, "b": 5}), ReadFailed),
        (ReadFailure("undecodable", error_code_map={"a": 0}), ReadFailed),
        (ReadFailure("a node died", error_code_map={"a": 5}), Overloaded),
        (ReadFailure("nodes are late", error_code_map={"a": 2, "b": 5}), Overloaded),
        (DriverException("Failed decoding result column"), ReadFailed),
        (ConnectionBusy("busy"), Overloaded),
        (OVERLOADED, Overloaded),
        (IsBootstrappingErrorMessage(0x1002, "starting", None), Overloaded),
        (ServerError(0x0000, "bug", None), Overloaded),
        (InvalidRequest("no such table"), Refused),
        (Unauthorized("no right"), Refused),
        (AuthenticationFailed("password"), Refused),
        (SyntaxException(0x2000, "typo", None), Refused),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_each_error_of_the_driver_says_who_has_to_act(
    error: Exception, ours: type[Exception]
) -> None:
    with pytest.raises(ours) as raised, translated("reading lineage"):
        raise error
    assert type(raised.value) is ours
    assert str(raised.value).startswith("reading lineage: ")
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is error


def test_errors_of_ours_and_bugs_pass_as_they_are() -> None:
    for error in (Misconfigured("x"), KeyError("x"), ZeroDivisionError()):
        with pytest.raises(type(error)) as raised, translated("reading lineage"):
            raise error
        assert raised.value is error


def test_a_key_is_in_the_same_bucket_in_every_process() -> None:
    assert bucket_of(f"{uuid.UUID(int=1)}/1") == 6
    assert bucket_of(f"{uuid.UUID(int=1)}/2") == 12


def test_keys_spread_over_all_buckets() -> None:
    mailbox = uuid.UUID("0c4e1c40-8c1f-11f0-8000-00163e000001")
    counts = Counter(bucket_of(f"{mailbox}/{uid}") for uid in range(16_000))
    assert set(counts) == set(range(BUCKETS))
    assert max(counts.values()) < 1_500


def test_groups_lose_nothing() -> None:
    assert [list(group) for group in in_groups(list(range(7)), 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(in_groups([], 3)) == []


def test_consistency_is_what_its_names_say() -> None:
    assert (levels().each, levels().serial) == (ConsistencyLevel.QUORUM, ConsistencyLevel.SERIAL)
    local = levels("LOCAL_QUORUM", "LOCAL_SERIAL")
    assert local.each == ConsistencyLevel.LOCAL_QUORUM
    assert local.serial == ConsistencyLevel.LOCAL_SERIAL


@pytest.mark.parametrize("name", ["", "Mine", "a-b", "a b", "a; DROP KEYSPACE b", "1a", "a" * 49])
def test_a_keyspace_name_cannot_carry_anything_else(name: str) -> None:
    with pytest.raises(Misconfigured):
        checked_name(name)
