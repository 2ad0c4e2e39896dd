"""Kafka: the topic of events, our own topics, what we publish, offsets and lag.

No other room imports the Kafka client.
"""

from streaming.topics.few import FewRecords
from streaming.topics.lanes import Lanes, came_astray
from streaming.topics.names import (
    batch_options,
    own_topics,
    stream_options,
    suspects_of,
)
from streaming.topics.publishing import (
    projection_of,
    publish_again,
    publish_dead_letters,
    publish_wakes,
    suspect_key,
    suspect_record,
)
from streaming.topics.record import Record
from streaming.topics.watcher import NOT_COMPACTED, Watcher

__all__ = [
    "NOT_COMPACTED",
    "FewRecords",
    "Lanes",
    "Record",
    "Watcher",
    "batch_options",
    "came_astray",
    "own_topics",
    "projection_of",
    "publish_again",
    "publish_dead_letters",
    "publish_wakes",
    "stream_options",
    "suspect_key",
    "suspect_record",
    "suspects_of",
]
