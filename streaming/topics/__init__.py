"""Kafka: the topic of events, our own topics, what we publish, offsets and lag.

No other room imports the Kafka client.
"""

from streaming.topics.clients import python_options as python_options
from streaming.topics.few import FewRecords as FewRecords
from streaming.topics.lanes import Lanes as Lanes
from streaming.topics.lanes import came_astray as came_astray
from streaming.topics.names import batch_options as batch_options
from streaming.topics.names import own_topics as own_topics
from streaming.topics.names import stream_options as stream_options
from streaming.topics.names import suspects_of as suspects_of
from streaming.topics.publish import projection_of as projection_of
from streaming.topics.publish import publish_again as publish_again
from streaming.topics.publish import publish_dead_letters as publish_dead_letters
from streaming.topics.publish import publish_wakes as publish_wakes
from streaming.topics.publish import suspect_key as suspect_key
from streaming.topics.publish import suspect_record as suspect_record
from streaming.topics.record import Record as Record
from streaming.topics.topic_copies import ACKNOWLEDGED_BY as ACKNOWLEDGED_BY
from streaming.topics.topic_copies import COPIES as COPIES
from streaming.topics.topic_copies import LARGEST_EVENT as LARGEST_EVENT
from streaming.topics.topic_copies import TOPIC_SETTINGS as TOPIC_SETTINGS
from streaming.topics.topic_copies import PartitionCopies as PartitionCopies
from streaming.topics.topic_copies import TopicCopies as TopicCopies
from streaming.topics.watcher import Watcher as Watcher
