"""What `reconcile doctor` says of topics (a real broker's: `tests/contract/test_topics.py`)."""

from collections.abc import Iterable
from typing import cast

from reconcilers.declared.families.message import MESSAGE
from streaming.commands.doctor.checks.broker import topics
from streaming.commands.doctor.checks.check import KafkaContext, Level
from streaming.settings import Settings
from streaming.topics import Watcher


class Silent:
    """All topics are there, and their settings may not be read: Kafka tells none of them."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        return [each for each in topics if each.startswith("james.")]

    def configured(self, topics: Iterable[str], name: str) -> dict[str, str]:
        return {}


def test_settings_of_topics_that_are_not_told_are_not_taken_for_right() -> None:
    context = KafkaContext(Settings(), (MESSAGE,), cast(Watcher, Silent()))
    said = [str(each) for each in topics(context) if each.level is not Level.OK]
    assert len(said) == 1
    assert "is not known" in said[0]
    assert "DescribeConfigs" in said[0]


class Split(Silent):
    """An agent with the connector's default names has written a topic for each table."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        return [each for each in topics if not each.endswith("table") and each.startswith("james.")]


def test_topics_of_single_tables_are_a_problem_for_no_stream_reads_them() -> None:
    context = KafkaContext(Settings(), (MESSAGE,), cast(Watcher, Split()))
    (only,) = (each for each in topics(context) if each.level is Level.PROBLEM)
    assert only.what == (
        "2 topics of single tables exist, which no stream reads,"
        " james.apache_james.imapuidtable among them"
    )
    assert "the topic.* lines of deploy/agent/agent.properties at every agent" in str(only)
