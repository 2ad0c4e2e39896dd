"""Cuts of connections by iptables, in the network namespace of the run: nothing else is touched."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from deploy.embedded.spec import Spec
from deploy.nemesis import tools
from deploy.nemesis.injector import Injector
from deploy.nemesis.links import CHAIN, Words, places
from deploy.nemesis.schedule import FaultChoice


def cuts(spec: Spec, brokers: Sequence[int]) -> Iterator[tuple[FaultChoice, Injector]]:
    """Every cut that can be injected, where Kafka's brokers have these ports.

    Healing removes its rules; both raise MissingToolError.
    """
    for place in places(spec, brokers):
        for choice, rules in place.cuts():
            yield choice, Injector(partial(_each, "-A", rules), partial(_each, "-D", rules))


def _each(what: str, rules: Iterable[Words]) -> None:
    for rule in rules:
        tools.iptables(what, CHAIN, *rule)
