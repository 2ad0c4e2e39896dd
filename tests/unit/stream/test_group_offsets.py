"""Offsets of a consumer group while its coordinator is still being found or reads itself in.

What the broker answers then was seen at a first commit; `tests/stack/test_commands.py` commits and
reads them at a real one.
"""

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock, PropertyMock, patch

import pytest
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    NoError,
    NotCoordinatorError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from reconcilers.words.errors import Unreachable
from streaming.settings import KafkaSettings
from streaming.topics import Watcher

PLACE = TopicPartition("letters", 0)
PASSING = [CoordinatorLoadInProgressError, NotCoordinatorError, CoordinatorNotAvailableError]


@pytest.fixture
def admin() -> Iterator[Mock]:
    with (
        patch("streaming.topics.watcher.KafkaAdminClient") as made,
        patch("streaming.topics.watcher.KafkaConsumer"),
        patch("streaming.topics.watcher.time.sleep"),
    ):
        yield made.return_value


@pytest.fixture
def watcher(admin: Mock) -> Watcher:
    return Watcher(KafkaSettings())


@pytest.mark.parametrize("failed", PASSING)
def test_a_commit_that_one_partition_refused_for_now_is_made_again(
    admin: Mock, watcher: Watcher, failed: type[KafkaError]
) -> None:
    admin.alter_group_offsets.side_effect = [{PLACE: failed}, {PLACE: NoError}]
    watcher.commit("group", {"letters": {0: 3}})
    assert admin.alter_group_offsets.call_count == 2


def test_a_consumer_that_cannot_be_replaced_is_an_unreachable_server(
    admin: Mock, watcher: Watcher
) -> None:
    admin.describe_topics.return_value = []
    replaced = PropertyMock(side_effect=KafkaConnectionError("no broker answers"))
    with patch.object(Watcher, "_consumer", replaced), patch.object(Watcher, "partitions", list):
        for asked in (watcher.end_offsets, watcher.beginning_offsets):
            with pytest.raises(Unreachable, match="positions of topics"):
                asked([])


def test_a_commit_that_is_refused_for_good_is_said(admin: Mock, watcher: Watcher) -> None:
    admin.alter_group_offsets.return_value = {PLACE: GroupAuthorizationFailedError}
    with pytest.raises(Unreachable, match="committing offsets of group group"):
        watcher.commit("group", {"letters": {0: 3}})


@pytest.mark.parametrize("failed", PASSING)
def test_what_was_committed_is_not_taken_for_nothing_while_it_is_read_in(
    admin: Mock, watcher: Watcher, failed: type[KafkaError]
) -> None:
    found: list[Any] = [failed(), {"group": {PLACE: OffsetAndMetadata(3, "", -1)}}]
    admin.list_group_offsets.side_effect = found
    assert watcher.committed("group") == {"letters": {0: 3}}


def test_a_coordinator_that_never_comes_is_said(admin: Mock, watcher: Watcher) -> None:
    admin.list_group_offsets.side_effect = CoordinatorNotAvailableError()
    with patch("streaming.topics.watcher.BOOTSTRAP_MS", 0), pytest.raises(Unreachable):
        watcher.committed("group")


def test_a_coordinator_that_has_moved_is_asked_for_by_a_new_client() -> None:
    old, new = Mock(), Mock()
    old.alter_group_offsets.side_effect = NotCoordinatorError
    new.alter_group_offsets.return_value = {PLACE: NoError}
    with (
        patch("streaming.topics.watcher.KafkaAdminClient", side_effect=[old, new]),
        patch("streaming.topics.watcher.KafkaConsumer"),
        patch("streaming.topics.watcher.time.sleep"),
    ):
        Watcher(KafkaSettings()).commit("group", {"letters": {0: 3}})
    assert old.close.called
    assert not new.close.called


def test_a_watcher_that_cannot_be_made_leaves_no_client_behind() -> None:
    with (
        patch("streaming.topics.watcher.KafkaAdminClient") as admin,
        patch("streaming.topics.watcher.KafkaConsumer", side_effect=KafkaError),
        pytest.raises(Unreachable, match="no Kafka broker answers"),
    ):
        Watcher(KafkaSettings())
    assert admin.return_value.close.called
