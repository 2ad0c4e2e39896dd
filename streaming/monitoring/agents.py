"""Whether each agent that captures changes reports that it is well."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from ssl import create_default_context
from threading import Event
from urllib.request import urlopen

from streaming.monitoring.metrics import Metrics
from streaming.settings import AgentSettings

ANSWER_S = 5.0
EVERY_S = 30.0


def unwell(address: str, ca: Path | None = None) -> list[str]:
    """The parts of the agent at this address (http://host:port) that are not well.

    ``ca`` are the authorities of an https address, else those of the operating system. Raises
    `OSError` if there is no answer, `ValueError` or `TypeError` if it is not an agent.
    """
    context = create_default_context(cafile=ca) if address.startswith("https:") else None
    try:
        with urlopen(f"{address.rstrip('/')}/health", timeout=ANSWER_S, context=context) as answer:
            parts = dict(json.load(answer))
    except HTTPException as broken:  # the agent died during its answer; not an `OSError`
        raise OSError(f"a broken answer: {broken!r}") from broken
    return [
        name
        for name, part in parts.items()
        if not (isinstance(part, dict) and part.get("healthy") is True)
    ]


def asking(settings: AgentSettings) -> Callable[[str], list[str]]:
    """`unwell` with the authorities of the settings."""
    return partial(unwell, ca=settings.tls_ca)


@dataclass(frozen=True, slots=True)
class AgentWatch:
    """Asks the agents in the settings from time to time, in a thread of its own.

    Nothing else shows a dead agent at once: without it no event comes, as if nothing was written.
    """

    addresses: Sequence[str]
    metrics: Metrics
    ask: Callable[[str], list[str]] = unwell

    def run(self, stop: Event) -> None:
        """Measure until ``stop`` is set."""
        self.measure()
        while self.addresses and not stop.wait(EVERY_S):
            self.measure()

    def measure(self) -> None:
        """Show for each agent whether it is well."""
        for address in self.addresses:
            self.metrics.agent_up.labels(address).set(self._is_well(address))

    def _is_well(self, address: str) -> bool:
        try:
            return not self.ask(address)
        except (OSError, ValueError, TypeError):
            return False
