"""What watches over a running stack from outside any test or shell, until `down`.

It turns change capture on for tables that appear, starts the agent when it died, and restarts it
when a table appeared that it cannot see.
"""

import logging
import signal
import threading
import time
from types import FrameType
from typing import Any

from deploy.embedded import cql
from deploy.embedded.agent import Agent
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.spec import Layout, Spec

log = logging.getLogger(__name__)

EVERY_S = 1.0
LONGEST_BACK_OFF_S = 30.0
STEADY_AFTER_S = 60.0
LONGEST_WAIT_FOR_TABLES_S = 10.0


class Supervisor:
    """One look a second; what fails is tried again."""

    def __init__(self, layout: Layout, spec: Spec) -> None:
        self._spec = spec
        self._agent = Agent(layout, spec)
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
            try:
                with cql.session(self._spec) as session:
                    self._away = False
                    self._watch(session)
            except cql.UNREACHABLE as error:
                if not self._away:
                    log.warning("Cassandra is away, trying again every second: %s", error)
                self._away = True
            self._ended.wait(EVERY_S)

    def _end(self, _signum: int, _frame: FrameType | None) -> None:
        self._ended.set()

    def _watch(self, session: Any) -> None:
        while not self._ended.is_set():
            self.look(session)
            self._ended.wait(EVERY_S)

    def look(self, session: Any) -> None:
        """One round. Raises cql.UNREACHABLE."""
        unseen = self._agent.unseen(session)
        if unseen != self._unseen:
            # Whoever makes tables makes many: wait until two looks agree.
            self._unseen = unseen
            self._unseen_since = self._unseen_since or time.monotonic()
            if unseen and time.monotonic() - self._unseen_since < LONGEST_WAIT_FOR_TABLES_S:
                return
        if not unseen:
            self._unseen_since = None
        dead = not self._agent.daemon.alive()
        if (dead or unseen) and time.monotonic() >= self._not_before:
            self._start_agent(session)

    def _start_agent(self, session: Any) -> None:
        if self._agent.held():
            self._agent.start_unless_held(session)  # for the sake of the tables only
            return
        if time.monotonic() - self._not_before > STEADY_AFTER_S:
            self._back_off_s = EVERY_S
        log.info("starting the agent" if not self._unseen else "restarting the agent: new tables")
        try:
            self._agent.start_unless_held(session)
        except EmbeddedError as error:
            log.error("the agent did not start: %s", error)
        self._not_before = time.monotonic() + self._back_off_s
        self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
