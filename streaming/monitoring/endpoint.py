"""The HTTP endpoint of a process."""

from __future__ import annotations

import logging
from typing import Literal

from prometheus_client import CollectorRegistry, start_http_server

from reconcilers.words.errors import Misconfigured
from streaming.monitoring.metrics import Metrics
from streaming.settings import MetricsSettings

log = logging.getLogger("reconciler")

Port = Literal["port", "canary_port", "sweep_port"]
"""The settings with ports, each for another process."""


def serve(metrics: Metrics, settings: MetricsSettings, name: Port = "port") -> int:
    """Serve the metrics over HTTP. Returns the port. Raises `Misconfigured` if it is taken.

    ``name`` is the setting with the port.
    """
    port = getattr(settings, name)
    try:
        server, _thread = start_http_server(port, addr=settings.host, registry=metrics.registry)
    except OSError as taken:
        raise Misconfigured(
            f"cannot serve metrics on {settings.host}:{port}: {taken.strerror}; set metrics.{name}"
        ) from taken
    return int(server.server_port)


def served(settings: MetricsSettings, name: Port, keyspace: str, mode: str) -> Metrics:
    """The metrics of a command that also works without: a taken port is logged only."""
    metrics = Metrics(CollectorRegistry())
    metrics.begin(keyspace, mode)
    try:
        log.info("metrics of %s on port %s", mode, serve(metrics, settings, name))
    except Misconfigured as taken:
        log.warning("%s", taken)
    return metrics
