"""What can be injected into a stack and its stream.

Connections are cut by `network`, `clocks` shifts clocks, and `disks` fills disks.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from deploy.embedded import Stack
from deploy.embedded.node import StackNode
from deploy.embedded.second_broker import SecondBroker
from deploy.embedded.spec import Spec
from deploy.nemesis.clocks import shifts
from deploy.nemesis.disks import full_disks
from deploy.nemesis.injector import Injector, nothing
from deploy.nemesis.leaders import moves
from deploy.nemesis.links import CLUSTER
from deploy.nemesis.network import cuts
from deploy.nemesis.plan import RunKind, RunPlan
from deploy.nemesis.schedule import FaultChoice, InjectedFault
from deploy.nemesis.stream import StreamProcess


def injectors(
    stack: Stack, stream: StreamProcess, second: SecondBroker | None, plan: RunPlan
) -> Mapping[FaultChoice, Injector]:
    """Every fault that can be injected here; no leader moves without a second broker."""
    clocks = dict(shifts(stack, plan.shift_s))
    if plan.kind is RunKind.CLOCKS:
        clocks = {each: _until_pause(how, stream) for each, how in clocks.items()}
    return {
        **_of_the_cluster(stack),
        **dict(_of_copies(stack)),
        **_of_the_others(stack, stream),
        **dict(_upgrades(stack)),
        **({} if second is None else dict(moves(stack, second))),
        **dict(cuts(stack.spec, brokers_of(stack.spec, second))),
        **clocks,
        **dict(full_disks(stack)),
    }


def brokers_of(spec: Spec, second: SecondBroker | None) -> list[int]:
    """The ports of Kafka's brokers; agents have one of their own where it is secure."""
    return [
        spec.ports.broker,
        *([] if second is None else [second.port]),
        *([] if spec.tls is None else [spec.tls.broker]),
    ]


def _of_the_cluster(stack: Stack) -> dict[FaultChoice, Injector]:
    """A node has its agent with it. The first node is the seed of others: it is not replaced."""
    found: dict[FaultChoice, Injector] = {}
    for node in stack.nodes:
        host, agent = node.place.host, node.agent
        found |= {
            FaultChoice(InjectedFault.KILL_NODE, host, CLUSTER): Injector(node.kill, node.start),
            FaultChoice(InjectedFault.PAUSE_NODE, host, CLUSTER): Injector(node.pause, node.resume),
            FaultChoice(InjectedFault.KILL_AGENT, host, CLUSTER): Injector(
                agent.kill, agent.let_go
            ),
            FaultChoice(InjectedFault.PAUSE_AGENT, host, CLUSTER): Injector(
                agent.pause, agent.resume
            ),
        }
        if node.place.number > 1:
            lost = FaultChoice(InjectedFault.REPLACE_NODE, host, CLUSTER)
            found[lost] = Injector(node.kill, node.replace)
    return found


def _of_copies(stack: Stack) -> Iterator[tuple[FaultChoice, Injector]]:
    """A node that misses writes for good, and the command that gives it what it lacks."""
    for node in stack.nodes:
        host, nodetool = node.place.host, node.cassandra.nodetool
        others = [each for each in stack.nodes if each is not node]
        missed = FaultChoice(InjectedFault.KILL_WITHOUT_HINTS, host, CLUSTER)
        yield (
            missed,
            Injector(
                partial(_kill_without_hints, node, others), partial(_start_with_hints, node, others)
            ),
        )
        repaired = FaultChoice(InjectedFault.REPAIR, host, CLUSTER)
        yield repaired, Injector(partial(nodetool, "repair", "--full", stack.keyspace), nothing)


def _upgrades(stack: Stack) -> Iterator[tuple[FaultChoice, Injector]]:
    """Injectors of other faults know the servers as they were: use either these or those."""
    for number, node in enumerate(stack.nodes):
        choice = FaultChoice(InjectedFault.UPGRADE, node.place.host, CLUSTER)
        yield choice, Injector(partial(_upgrade, stack, number), nothing)


def _upgrade(stack: Stack, number: int) -> None:
    stack.upgrade(stack.nodes[number])


def _until_pause(shift: Injector, stream: StreamProcess) -> Injector:
    """A shift after which repairs pause, or the run ends."""

    def inject() -> None:
        shift.inject()
        stream.await_pause()

    return Injector(inject, shift.heal)


def _kill_without_hints(node: StackNode, others: Sequence[StackNode]) -> None:
    for each in others:
        each.cassandra.nodetool("disablehandoff")
    node.kill()


def _start_with_hints(node: StackNode, others: Sequence[StackNode]) -> None:
    node.start()
    for each in others:
        each.cassandra.nodetool("enablehandoff")


def _of_the_others(stack: Stack, stream: StreamProcess) -> dict[FaultChoice, Injector]:
    each = {
        InjectedFault.KILL_BROKER: Injector(stack.kill_kafka, stack.start_kafka),
        InjectedFault.PAUSE_BROKER: Injector(stack.pause_kafka, stack.resume_kafka),
        InjectedFault.KILL_STREAM: Injector(stream.crash, stream.start),
        InjectedFault.PAUSE_STREAM: Injector(stream.pause, stream.resume),
        InjectedFault.KILL_WORKERS: Injector(stream.kill_workers, nothing),
        InjectedFault.PAUSE_WORKERS: Injector(stream.pause_workers, stream.resume),
    }
    brokers = {InjectedFault.KILL_BROKER, InjectedFault.PAUSE_BROKER}
    names = {kind: "broker" if kind in brokers else "stream" for kind in each}
    return {FaultChoice(kind, names[kind], names[kind]): each[kind] for kind in each}
