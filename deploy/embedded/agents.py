"""All agents of a stack: what each must know of the others when it starts."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Self

from deploy.embedded import capture
from deploy.embedded.agent import Agent
from deploy.embedded.layout import Layout
from deploy.embedded.spec import Spec


class Agents:
    """Starts agents together.

    No table's capture is turned on while one runs: it would drop that table's events.
    """

    def __init__(self, spec: Spec, each: Sequence[Agent]) -> None:
        self.each = tuple(each)
        self._spec = spec

    @classmethod
    def of(cls, layout: Layout, spec: Spec) -> Self:
        """One for each node of a stack."""
        return cls(spec, [Agent(layout, spec, node.number) for node in spec.nodes])

    def host(self) -> str:
        """A node to ask: the first whose agent is not on hold, or the first of all."""
        free = (agent for agent in self.each if not agent.held())
        return next(free, self.each[0]).place.host

    def unseen(self, session: Any) -> frozenset[str]:
        """The tables that should be captured and that an agent cannot see; one on hold may not.

        Names of those without capture, ids of those that have it. Raises cql.UNREACHABLE.
        """
        lacking = capture.lacking(session, self._spec.keyspace, self._spec.tables)
        captured = capture.captured(session)
        return lacking.union(*(captured - agent.seen() for agent in self._free()))

    def ended(self) -> bool:
        """Whether an agent does not run that is not on hold."""
        return any(not agent.daemon.alive() for agent in self._free())

    def start(self, session: Any) -> None:
        """Start each that is not on hold, and again where tables appeared; return when they answer.

        Where one is paused, tables that appeared wait for it. Raises StartError, cql.UNREACHABLE.
        """
        with ExitStack() as locked:
            for agent in self.each:
                locked.enter_context(agent.locked())
            if not any(agent.held() and agent.daemon.alive() for agent in self.each):
                self._capture(session)
            for agent in self._free():
                if not agent.daemon.alive():
                    agent.launch(session)
        for agent in self._free():
            agent.await_answer(session)

    def _capture(self, session: Any) -> None:
        """Turn capture on where it lacks; every agent that does not see all tables is ended."""
        lacking = capture.lacking(session, self._spec.keyspace, self._spec.tables)
        captured = capture.captured(session)
        for agent in self._free():
            if lacking or captured - agent.seen():
                agent.end()
        capture.switch_on(session, self._spec.keyspace, self._spec.tables)

    def _free(self) -> list[Agent]:
        return [agent for agent in self.each if not agent.held()]
