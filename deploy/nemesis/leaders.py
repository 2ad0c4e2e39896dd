"""Kafka's leaders move: a second broker has a copy of everything, and is no controller."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from deploy.embedded import Stack
from deploy.embedded.second_broker import (
    FIRST,
    SECOND,
    SecondBroker,
    await_leader,
    keep_at,
    partitions_of,
)
from deploy.nemesis.injector import Injector
from deploy.nemesis.schedule import FaultChoice, InjectedFault


@contextmanager
def second_broker(stack: Stack, folder: Path) -> Iterator[SecondBroker]:
    """It runs inside, and the first broker leads everything. Raises EmbeddedError, KafkaError."""
    broker = SecondBroker(stack, folder)
    try:
        broker.launch()
        keep_at(stack, partitions_of(stack), (FIRST, SECOND))
        yield broker
    finally:
        broker.kill()


def moves(stack: Stack, broker: SecondBroker) -> Iterator[tuple[FaultChoice, Injector]]:
    """All leaders move to the second broker in order, and back because it is killed."""
    move = FaultChoice(InjectedFault.MOVE_LEADERS, "the second broker", "broker")
    yield move, Injector(partial(_move, stack), partial(_kill, stack, broker))


def _move(stack: Stack) -> None:
    keep_at(stack, partitions_of(stack), (SECOND, FIRST))


def _kill(stack: Stack, broker: SecondBroker) -> None:
    partitions = partitions_of(stack)
    broker.kill()
    await_leader(stack, partitions, FIRST)
    broker.launch()
    keep_at(stack, partitions, (FIRST, SECOND))
