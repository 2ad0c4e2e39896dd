"""What `reconcile doctor` asks of topics: retention, copies, partitions, and the newest record."""

import json

import pytest

from streaming.commands.doctor import command
from streaming.commands.doctor.checks.check import Check, Level
from streaming.topics import PartitionCopies, Record
from tests.fakes.listed_topics import EVENTS, OURS, SETTINGS, FakeTopics, all_copied, copied, told

ALL = {EVENTS, *OURS}


def everywhere(name: str, value: str) -> dict[str, dict[str, str]]:
    return {topic: {name: value} for topic in ALL}


def only(watcher: FakeTopics) -> Check:
    (found,) = told(watcher)
    return found


def test_three_copies_kept_for_a_week_are_in_order() -> None:
    assert told(FakeTopics()) == []


@pytest.mark.parametrize(
    ("name", "value", "what", "mended"),
    [
        ("retention.ms", "5400000", "for 1.5 h (retention.ms 5400000)", "retention.ms=604800000"),
        ("retention.bytes", "100000000", "keeps 95 MiB, however young", "retention.bytes=-1"),
        ("retention.bytes", "0", "keeps 0 MiB, however young", "retention.bytes=-1"),
        ("cleanup.policy", "compact,delete", "compacted (cleanup.policy", "cleanup.policy=delete"),
        ("max.message.bytes", "1048588", "over 1,048,588 bytes", "max.message.bytes=8388608"),
        ("min.insync.replicas", "1", "may be on one broker alone", "min.insync.replicas=2"),
        ("min.insync.replicas", "4", "nothing can be written", "min.insync.replicas=2"),
        ("unclean.leader.election.enable", "true", "lacks records", "election.enable=false"),
    ],
)
def test_a_setting_under_which_events_are_lost_is_a_problem(
    name: str, value: str, what: str, mended: str
) -> None:
    found = only(FakeTopics(differs={EVENTS: {name: value}}))
    assert found.level is Level.PROBLEM
    assert found.what.startswith(f"topic {EVENTS}: ")
    assert what in found.what
    assert name in found.what
    assert "kafka-configs.sh --bootstrap-server … --alter --entity-type topics" in found.advice
    assert mended in found.advice


def test_topics_with_the_same_value_are_one_line() -> None:
    found = only(FakeTopics(differs=everywhere("min.insync.replicas", "1")))
    assert found.what.startswith(f"topics {', '.join(sorted(ALL))}: min.insync.replicas is 1, of 3")


def test_a_limit_in_bytes_must_hold_a_day() -> None:
    """A GiB does where little came; not where ten million records did."""
    limited = {EVENTS: {"retention.bytes": str(2**30)}}
    assert told(FakeTopics(differs=limited)) == []
    found = only(FakeTopics(differs=limited, added={EVENTS: 10_000_000}))
    assert found.level is Level.PROBLEM
    assert "a day or more may take 19,531 MiB" in found.what


def test_topics_of_our_own_may_refuse_what_is_never_sent_there() -> None:
    ours = {topic: {"max.message.bytes": "1048588"} for topic in OURS}
    assert told(FakeTopics(differs=ours)) == []
    small = only(FakeTopics(differs={OURS[2]: {"max.message.bytes": "65536"}}))
    assert "records over 65,536 bytes are refused" in small.what


def test_one_copy_is_a_problem_if_there_are_brokers_for_more() -> None:
    one = dict.fromkeys(ALL, all_copied(1))
    found = only(FakeTopics(partitions=one, differs=everywhere("min.insync.replicas", "1")))
    assert found.level is Level.PROBLEM
    assert "one copy (replication factor 1) on one of 3 brokers" in found.what
    assert "make 3 copies: kafka-reassign-partitions.sh" in found.advice


def test_one_copy_on_a_single_broker_is_a_warning() -> None:
    one = dict.fromkeys(ALL, all_copied(1))
    alone = FakeTopics(brokers=1, partitions=one, differs=everywhere("min.insync.replicas", "1"))
    found = only(alone)
    assert found.level is Level.WARNING
    assert "one copy, and with one broker there cannot be more" in found.what


def test_one_copy_of_which_two_are_asked_for_takes_no_record() -> None:
    alone = FakeTopics(brokers=1, partitions=dict.fromkeys(ALL, all_copied(1)))
    single, refused = told(alone)
    assert (single.level, refused.level) == (Level.WARNING, Level.PROBLEM)
    assert "min.insync.replicas is 2, of 1 copies: nothing can be written" in refused.what
    assert "min.insync.replicas=1" in refused.advice


@pytest.mark.parametrize(
    ("least", "level", "says"),
    [("1", Level.PROBLEM, "one broker alone"), ("2", Level.WARNING, "agents wait while a broker")],
)
def test_two_copies_are_either_unsafe_or_wait(least: str, level: Level, says: str) -> None:
    two = {EVENTS: all_copied(2)}
    found = only(FakeTopics(partitions=two, differs={EVENTS: {"min.insync.replicas": least}}))
    assert found.level is level
    assert says in found.what


def test_partitions_without_leader_or_behind_are_named() -> None:
    broken = (PartitionCopies(1, 3, 0, False), PartitionCopies(2, 3, 2, True), *all_copied(3)[2:])
    headless, late = told(FakeTopics(partitions={EVENTS: broken}))
    assert (headless.level, late.level) == (Level.PROBLEM, Level.WARNING)
    assert f"topic {EVENTS}: partition 1 has no leader" in headless.what
    assert f"topic {EVENTS}: copies of partitions 2 are not in sync" in late.what


@pytest.mark.parametrize("number", [1, 7])
def test_fewer_partitions_than_were_chosen_are_a_warning(number: int) -> None:
    few = tuple(copied(3, each) for each in range(number))
    found = only(FakeTopics(partitions={EVENTS: few}))
    assert found.level is Level.WARNING
    assert f"{number} partitions, fewer than kafka.partitions (8)" in found.what
    assert "double their number until it is reached" in found.advice


def test_the_command_that_creates_it_has_the_chosen_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    absent = told(FakeTopics(absent=frozenset({EVENTS, OURS[0]})))
    command._print_fixes(SETTINGS, absent)
    created = [line for line in capsys.readouterr().out.splitlines() if "--create" in line]
    assert [("--partitions 8" in each) for each in created] == [True, False]
    assert all("max.message.bytes=8388608" in each for each in created)


def test_our_own_topics_may_have_one_partition() -> None:
    assert told(FakeTopics(partitions=dict.fromkeys(OURS, (copied(3),)))) == []


def test_very_many_partitions_cost_as_many_canaries() -> None:
    many = tuple(copied(3, number) for number in range(65))
    found = only(FakeTopics(partitions={EVENTS: many}))
    assert found.level is Level.WARNING
    assert "65 partitions, each with canaries: 65 writes a second to each node" in found.what


EVENT = {"op": "i", "ts_ms": 1, "source": {"table": "canary"}, "after": {}}
KEY = {"place": "a/0", "lane": 0}


def newest(value: bytes | None, key: bytes | None = None, topic: str = EVENTS) -> list[Check]:
    key = json.dumps(KEY).encode() if key is None else key
    return told(FakeTopics(newest={topic: Record(topic, 0, 0, key, value)}))


def wrapped(payload: object) -> bytes:
    return json.dumps({"schema": {"type": "struct"}, "payload": payload}).encode()


def test_an_event_and_a_tombstone_are_in_order() -> None:
    assert newest(json.dumps(EVENT).encode()) == []
    assert newest(None) == []


@pytest.mark.parametrize(
    ("value", "key", "says"),
    [
        (wrapped(EVENT), None, "set value.converter.schemas.enable=false at every agent"),
        (json.dumps(EVENT).encode(), wrapped(KEY), "set key.converter.schemas.enable=false at"),
        (b"\0\0\0\0\1Hi", None, "Avro or the like, not JSON: set value.converter=org.apache.kafka"),
        (json.dumps(EVENT).encode(), b"\0\0\0\0\1Hi", "set key.converter=org.apache.kafka"),
        (b"Struct{op=i}", None, "its value is not JSON"),
        (b'{"op": "i"}', None, "its value has no source"),
        (b"[]", None, "its value has no source"),
    ],
)
def test_an_event_of_another_converter_is_a_problem(
    value: bytes, key: bytes | None, says: str
) -> None:
    (found,) = newest(value, key)
    assert found.level is Level.PROBLEM
    assert found.what == f"the newest record of {EVENTS}/0 offset 0 cannot be read"
    assert says in found.advice


def test_what_another_program_writes_to_our_topics_is_a_problem() -> None:
    assert newest(b'{"family": "message", "wake": {}}', b"a/b/7", OURS[0]) == []
    assert newest(b'{"reason": "malformed"}', b"james/0/7", OURS[2]) == []
    (found,) = newest(b'{"hello": 1}', b"a", OURS[0])
    assert found.advice == "its value has no wake: does another program write to this topic?"
