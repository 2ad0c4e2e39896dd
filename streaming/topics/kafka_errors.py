"""Translation of the Kafka client's errors to `reconcilers.words.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import KafkaError

from reconcilers.words.errors import Unreachable


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise the client's errors as `Unreachable`; ``doing`` begins the message."""
    try:
        yield
    except KafkaError as failed:
        raise Unreachable(f"{doing}: {failed}") from failed
