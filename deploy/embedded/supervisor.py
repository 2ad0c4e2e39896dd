"""What watches over a running stack from outside any test or shell, until `down`.

It turns change capture on for tables that appear, starts an agent that died, and restarts agents
when a table appeared that they cannot see.
"""

import logging
import signal
import threading
import time
from types import FrameType
from typing import Any

from deploy.embedded import cql
from deploy.embedded.agents import Agents
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.layout import Layout
from deploy.embedded.spec import Spec

log = logging.getLogger(__name__)

EVERY_S = 1.0
LONGEST_BACK_OFF_S = 30.0
STEADY_AFTER_S = 60.0
LONGEST_WAIT_FOR_TABLES_S = 10.0


class Supervisor:
    """One look a second; what fails is tried again."""

    def __init__(self, layout: Layout, spec: Spec) -> None:
        self._spec = spec
        self._agents = Agents.of(layout, spec)
        self._ended = threading.Event()
        self._away = False
        self._back_off_s = EVERY_S
        self._not_before = 0.0
        self._unseen: frozenset[str] = frozenset()
        self._unseen_since: float | None = None

    def run(self) -> None:
        """Look until SIGTERM or SIGINT."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._end)
        while not self._ended.is_set():
            host = self._agents.host()
            try:
                with cql.session(self._spec, host) as session:
                    self._away = False
                    self._watch(session, host)
            except cql.UNREACHABLE as error:
                if not self._away:
                    log.warning("Cassandra is away, trying again every second: %s", error)
                self._away = True
            self._ended.wait(EVERY_S)

    def _end(self, _signum: int, _frame: FrameType | None) -> None:
        self._ended.set()

    def _watch(self, session: Any, host: str) -> None:
        while not self._ended.is_set() and self._agents.host() == host:
            self.look(session)
            self._ended.wait(EVERY_S)

    def look(self, session: Any) -> None:
        """One round. Raises cql.UNREACHABLE."""
        unseen = self._agents.unseen(session)
        if unseen != self._unseen:
            # Whoever makes tables makes many: wait until two looks agree.
            self._unseen = unseen
            self._unseen_since = self._unseen_since or time.monotonic()
            if unseen and time.monotonic() - self._unseen_since < LONGEST_WAIT_FOR_TABLES_S:
                return
        if not unseen:
            self._unseen_since = None
        if (self._agents.ended() or unseen) and time.monotonic() >= self._not_before:
            self._start_agents(session)

    def _start_agents(self, session: Any) -> None:
        if all(agent.held() for agent in self._agents.each):
            self._agents.start(session)  # for the sake of the tables only
            return
        if time.monotonic() - self._not_before > STEADY_AFTER_S:
            self._back_off_s = EVERY_S
        log.info("starting the agent" if not self._unseen else "restarting the agent: new tables")
        try:
            self._agents.start(session)
        except EmbeddedError as error:
            log.error("the agent did not start: %s", error)
        self._not_before = time.monotonic() + self._back_off_s
        self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
