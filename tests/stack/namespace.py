"""A network namespace for one process: it has another address, and reaches some ports of this host.

`python -m tests.stack.namespace FROM TO PORT…` takes connections to an address at these ports, and
passes them on to the same ports of another.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from deploy.embedded.ports import is_open
from tests.stack.streams import module, until

NAME, HERE, THERE = "reconciler", "10.213.7.1", "10.213.7.2"
"""The namespace; this end of the link to it; and the other end, which is its address."""
LOOPBACK = "127.0.0.1"
INSIDE = ("ip", "netns", "exec", NAME)
CHUNK = 65_536


@contextmanager
def namespace(ports: Sequence[int]) -> Iterator[Sequence[str]]:
    """The words before a command that runs it there; these ports are there as they are here."""
    outer, inner = f"{NAME}-0", f"{NAME}-1"
    with ExitStack() as undone:
        _ip(f"netns add {NAME}")
        undone.callback(_ip, f"netns del {NAME}")  # its end of the link goes, and so does ours
        _ip(f"link add {outer} type veth peer name {inner} netns {NAME}")
        for words in (f"addr add {HERE}/30 dev {outer}", f"link set {outer} up"):
            _ip(words)
        for words in (f"addr add {THERE}/30 dev {inner}", f"link set {inner} up", "link set lo up"):
            _ip(f"-n {NAME} {words}")
        closed = [port for port in ports if not is_open(port, HERE)]  # others listen everywhere
        outside: tuple[str, ...] = ()
        for where, source, target, some in (
            (outside, HERE, LOOPBACK, closed),
            (INSIDE, LOOPBACK, HERE, ports),
        ):
            command = [*where, *module(__name__), source, target, *map(str, some)]
            forwarder = undone.enter_context(subprocess.Popen(command))
            undone.callback(forwarder.kill)
        until("its ports are open", lambda: all(is_open(port, HERE) for port in ports))
        yield INSIDE


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


async def _forward(source: str, target: str, ports: Sequence[int]) -> None:
    """Pass on what comes to these ports of an address, for ever."""
    for port in ports:
        await asyncio.start_server(partial(_connected, target, port), source, port)
    await asyncio.Event().wait()


async def _connected(
    target: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        answers, questions = await asyncio.open_connection(target, port)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_copy(reader, questions), _copy(answers, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(CHUNK):
            writer.write(some)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(_forward(sys.argv[1], sys.argv[2], [int(each) for each in sys.argv[3:]]))
