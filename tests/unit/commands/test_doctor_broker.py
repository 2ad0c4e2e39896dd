"""What `reconcile doctor` says of topics (a real broker's: `tests/contract/test_topics.py`)."""

from collections.abc import Iterable
from dataclasses import dataclass

from streaming.commands.doctor.checks.check import Level
from tests.fakes.listed_topics import FakeTopics, told


def test_settings_of_topics_that_are_not_told_are_not_taken_for_right() -> None:
    (found,) = told(FakeTopics(tells_settings=False))
    assert found.level is Level.WARNING
    assert "is not known" in found.what
    assert "DescribeConfigs" in found.advice


@dataclass
class Split(FakeTopics):
    """An agent with the connector's default names has written a topic for each table."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        return [each for each in topics if not each.endswith("table") and each.startswith("james.")]


def test_topics_of_single_tables_are_a_problem_for_no_stream_reads_them() -> None:
    (only,) = told(Split())
    assert only.level is Level.PROBLEM
    assert only.what == (
        "2 topics of single tables exist, which no stream reads,"
        " james.apache_james.imapuidtable among them"
    )
    assert "the topic.* lines of deploy/agent/agent.properties at every agent" in str(only)
