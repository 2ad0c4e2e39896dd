"""Disks that fill: small file systems in memory, in the mount namespace of the run.

The whole disk of the last node is one, because Cassandra links the files of cdc_raw to those of its
commit log, which only works on one file system. Kafka's log folder is another.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from deploy.embedded import Stack
from deploy.embedded.errors import StartError
from deploy.nemesis.injector import Injector
from deploy.nemesis.links import CLUSTER
from deploy.nemesis.schedule import FaultChoice, InjectedFault

SIZE = "4g"
"""More than a run writes. Memory is used by what is written only."""
TRIES = 50


@contextmanager
def small_disks(stack: Stack) -> Iterator[None]:
    """Both disks are mounted inside, and gone after. Raises StartError where mounting fails.

    The stack must be up only inside.
    """
    with ExitStack() as mounted:
        for folder in (disk_of_last_node(stack), disk_of_broker(stack)):
            folder.mkdir(parents=True, exist_ok=True)
            _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder))
            mounted.callback(_run, "umount", "--lazy", str(folder))
        yield


def disk_of_last_node(stack: Stack) -> Path:
    """The folder of a node's data, commit log, cdc_raw and hints."""
    return stack.layout.of_node(stack.nodes[-1].place.number).cassandra


def disk_of_broker(stack: Stack) -> Path:
    """Kafka's log folder."""
    return stack.layout.kafka / "data"


def fill(folder: Path) -> None:
    """Leave no free block on a disk. Raises StartError where that fails.

    Less than what is used is refused: where something was written meanwhile, it is asked again.
    """
    for tried in range(1, TRIES + 1):
        state = os.statvfs(folder)
        used = (state.f_blocks - state.f_bfree) * state.f_frsize
        try:
            _run("mount", "-o", f"remount,size={used}", str(folder))
        except StartError:
            if tried == TRIES:
                raise
        else:
            break


def free(folder: Path) -> None:
    """Give a disk its size back. Raises StartError where that fails."""
    _run("mount", "-o", f"remount,size={SIZE}", str(folder))


def full_disks(stack: Stack) -> Iterator[tuple[FaultChoice, Injector]]:
    """Both disks. What was ended by the full disk, or might have been, is started again."""
    node = stack.nodes[-1]
    disk = disk_of_last_node(stack)

    def heal_node() -> None:
        free(disk)
        node.kill()
        node.start()

    def heal_broker() -> None:
        free(disk_of_broker(stack))
        stack.kill_kafka()
        stack.start_kafka()

    yield (
        FaultChoice(InjectedFault.NODE_DISK, node.place.host, CLUSTER),
        Injector(partial(fill, disk), heal_node),
    )
    yield (
        FaultChoice(InjectedFault.BROKER_DISK, "broker", "broker"),
        Injector(partial(fill, disk_of_broker(stack)), heal_broker),
    )


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or "no message").splitlines()[0]
        raise StartError(f"{' '.join(command)}: {said[:200]}")
