"""Cuts of connections, in a network namespace of the run's own: nothing else is touched.

    private_namespaces()          # before anything is started
    separate(stack)               # before the stack is up
    cuts(stack.spec)              # what can be injected

Rules go when the namespace goes: when its last process has ended.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial

from deploy.embedded import Stack
from deploy.embedded.spec import Spec
from deploy.nemesis import tools
from deploy.nemesis.injector import Injector
from deploy.nemesis.links import CHAIN, Words, agent_group, first_rules, node_group, places
from deploy.nemesis.schedule import FaultChoice

INSIDE = "--inside"
"""The option of a run that is in namespaces of its own."""
ENTER = ("unshare", "--net", "--mount", "--propagation", "private", "--")
LOOPBACK_UP = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def enter(arguments: Iterable[str]) -> None:
    """Go on as `python -m deploy.nemesis` in namespaces of its own. Does not return."""
    again = (sys.executable, "-m", "deploy.nemesis", INSIDE, *arguments)
    os.execvp(ENTER[0], [*ENTER, *LOOPBACK_UP, *again])


def in_group(group: int) -> Words:
    """The words before a command that give its process a group."""
    return ("setpriv", "--regid", str(group), "--keep-groups", "--")


def separate(stack: Stack) -> None:
    """Give each node and agent a group, and mark their connections. Before the stack is up.

    Raises MissingToolError where iptables does not work.
    """
    for node in stack.nodes:
        node.cassandra.daemon.precede(in_group(node_group(node.place.number)))
        node.agent.daemon.precede(in_group(agent_group(node.place.number)))
    for rule in first_rules(stack.spec):
        tools.iptables(*rule)


def cuts(spec: Spec) -> Mapping[FaultChoice, Injector]:
    """Every cut that can be injected. Healing removes its rules; both raise MissingToolError."""
    return {
        choice: Injector(partial(_each, "-A", rules), partial(_each, "-D", rules))
        for place in places(spec)
        for choice, rules in place.cuts()
    }


def _each(what: str, rules: Iterable[Words]) -> None:
    for rule in rules:
        tools.iptables(what, CHAIN, *rule)
