"""Every process of a run as if it were on a host of its own: a Unix group, a clock, small disks.

enter(arguments)      # before anything is started: does not return
make_hosts(stack)     # before the stack is up
"""

import os
import subprocess
import sys
from collections.abc import Iterable

from deploy.embedded import Stack
from deploy.embedded.errors import MismatchError, MissingToolError
from deploy.nemesis import tools
from deploy.nemesis.clocks import by_clock, clock_of, set_clocks
from deploy.nemesis.links import Words, agent_group, first_rules, node_group

OUTSIDE = "NEMESIS_OUTSIDE"
"""In the environment of a run: the network namespace from which it was started."""
ENTER = ("unshare", "--net", "--mount", "--propagation", "private", "--")
PREPARE = "ip link set lo up && mount -t tmpfs tmpfs /dev/shm"
"""libfaketime leaves files in /dev/shm."""
THEN = ("sh", "-c", f'{PREPARE} && exec "$@"', "sh")


def enter(arguments: Iterable[str]) -> None:
    """Go on as `python -m deploy.nemesis` in namespaces of its own. Does not return.

    Rules and mounts go when the namespaces go: when their last process has ended. Raises
    MissingToolError where namespaces cannot be made.
    """
    tried = subprocess.run([*ENTER, *THEN, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        said = (tried.stderr.strip() or "no message").splitlines()[-1]
        raise MissingToolError(f"a network of its own cannot be made: {said[:200]}")
    os.environ[OUTSIDE] = _network()
    again = (sys.executable, "-m", "deploy.nemesis", *arguments)
    os.execvp(ENTER[0], [*ENTER, *THEN, *again])


def is_alone() -> bool:
    """Whether this process is in namespaces that `enter` made."""
    return os.environ.get(OUTSIDE, _network()) != _network()


def _network() -> str:
    """The name of this process's network namespace."""
    return os.readlink("/proc/self/ns/net")


def in_group(group: int) -> Words:
    """The words before a command that give its process a Unix group."""
    return ("setpriv", "--regid", str(group), "--keep-groups", "--")


def make_hosts(stack: Stack) -> None:
    """Give each node and agent a group and a clock, and mark their connections.

    Raises MismatchError outside a network namespace of the run's own, MissingToolError where
    iptables does not work.
    """
    if not is_alone():
        raise MismatchError("faults are injected in a network of their own: use make nemesis")
    for node in stack.nodes:
        number = node.place.number
        clock = clock_of(stack, number)
        set_clocks([clock], 0)
        groups = ((node.cassandra.daemon, node_group), (node.agent.daemon, agent_group))
        for daemon, group in groups:
            daemon.precede((*in_group(group(number)), *by_clock(clock)))
    for rule in first_rules(stack.spec):
        tools.iptables(*rule)
