"""What the producer of our own topics is made with."""

from unittest.mock import patch

from streaming.settings import KafkaSettings
from streaming.topics import publish


def test_a_batch_that_expired_ends_no_producer() -> None:
    """kafka-python turns idempotence on, and never sends again once a batch has expired."""
    with patch.object(publish, "KafkaProducer") as made:
        publish._producer.__wrapped__(KafkaSettings())
    assert made.call_args.kwargs["enable_idempotence"] is False
    assert made.call_args.kwargs["acks"] == "all"
