"""What systemd is told of a service: it is ready, it is alive, it stops.

The protocol is that of `sd_notify(3)`: lines in one datagram to the socket that systemd names.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from threading import Event

from streaming.monitoring.health import Health

log = logging.getLogger("reconciler")

TICK = 1.0
"""Seconds between two messages; a unit's WatchdogSec must be longer."""


@dataclass(slots=True)
class Notifier:
    """Tells systemd how a process is. ``address`` is that of its socket."""

    health: Health
    address: str
    _failing: bool = False

    def run(self, stop: Event) -> None:
        """Send the state every `TICK` until ``stop`` is set, and then that the process stops."""
        while not stop.wait(TICK):
            self._send(*self.state())
        self._send("STOPPING=1")

    def state(self) -> list[str]:
        """The lines of the present state: alive as `/livez` says, ready if it runs or stands by."""
        lines = [f"STATUS={'; '.join(self.health.unready()) or 'ready'}"]
        if self.health.dead() is None:
            lines.append("WATCHDOG=1")
        if self.health.begun() or self.health.standing_by is not None:
            lines.append("READY=1")
        return lines

    def _send(self, *lines: str) -> None:
        """Send one datagram. What cannot be sent at once is logged; the next one is tried again."""
        text = "\n".join(" ".join(each.splitlines()) for each in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(text.encode("utf-8", "replace"), self.address)
        except OSError as failed:
            if not self._failing:
                log.warning("systemd cannot be told how this process is: %s", failed)
            self._failing = True
        else:
            self._failing = False
