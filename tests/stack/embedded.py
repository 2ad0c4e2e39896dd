"""The stack of deploy.embedded for tests: started for the run, gone after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.endpoints import Endpoints, Running


@contextmanager
def running_embedded(data: Path) -> Iterator[Running]:
    """Start Cassandra, Kafka and the agent under `data`; no process of theirs is left behind."""
    from deploy.embedded import Stack

    with Stack(data) as stack:
        yield Running(Endpoints.of(stack.describe()), supervised)


def supervised() -> None:
    """Nothing to do for new tables: the stack's supervisor starts the agent again for them."""
