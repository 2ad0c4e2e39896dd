"""The HTTP endpoint of a process: `/metrics`, `/livez`, `/readyz`, and pages of its commands."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from reconcilers.words.errors import Misconfigured
from streaming.monitoring.health import Health
from streaming.monitoring.metrics import Metrics
from streaming.settings import MetricsSettings
from streaming.settings.secrets import server_context

log = logging.getLogger("reconciler")

Port = Literal["port", "canary_port", "sweep_port"]
"""The settings with ports, each for another process."""
ANSWER_S = 30.0
"""How long (s) a client may take to say, or to read, something."""
OK, UNAVAILABLE = "200 OK", "503 Service Unavailable"
TEXT = "text/plain; charset=utf-8"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
)
"""The pages load nothing, run no script, and are not stored."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request; ``kind`` is its MIME type."""

    text: str
    status: str = OK
    kind: str = TEXT


Routes = Mapping[str, Callable[[], HttpAnswer]]
"""What is answered at a path."""


def as_json(value: Any, status: str = OK) -> HttpAnswer:
    """A JSON object as an answer."""
    return HttpAnswer(json.dumps(value, indent=2) + "\n", status, "application/json")


def health_routes(health: Health) -> Routes:
    """`/livez` and `/readyz`: 200, or 503 with one reason a line."""

    def answer(reasons: list[str]) -> HttpAnswer:
        return HttpAnswer("\n".join(reasons or ["ok"]) + "\n", UNAVAILABLE if reasons else OK)

    return {
        "/livez": lambda: answer([dead] if (dead := health.dead()) else []),
        "/readyz": lambda: answer(health.unready()),
    }


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A WSGI application that only reads: the metrics of a process, and its other ``routes``."""

    registry: CollectorRegistry
    routes: Routes = field(default_factory=dict)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request. A fault of a page is answered by 500; the server logs it."""
        path = environ.get("PATH_INFO", "/")
        if path == "/metrics":
            metrics: Iterable[bytes] = make_wsgi_app(self.registry)(environ, start_response)
            return metrics
        answer = self._answer(path, environ.get("REQUEST_METHOD", "GET"))
        body = answer.text.encode("utf-8", "replace")
        length = ("Content-Length", str(len(body)))
        start_response(answer.status, [("Content-Type", answer.kind), length, *HEADERS])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    def _answer(self, path: str, method: str) -> HttpAnswer:
        if method not in {"GET", "HEAD"}:
            return HttpAnswer("it only reads\n", "405 Method Not Allowed")
        route = self.routes.get(path)
        if route is None:
            return HttpAnswer("there is no such page\n", "404 Not Found")
        return route()


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request; ``host`` may be an IPv6 address."""

    daemon_threads = True
    tls: Callable[[], ssl.SSLContext | None] = staticmethod(lambda: None)
    """What a new connection needs, read anew for each: files may have been replaced."""

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one request, in its thread: a client that says nothing holds up no other."""
        request.settimeout(ANSWER_S)
        context = self.tls()
        if context is None:
            super().finish_request(request, client_address)
            return
        with context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a fault of a page; a client that speaks no TLS, or goes away, is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log no request."""


def context_of(settings: MetricsSettings) -> ssl.SSLContext | None:
    """What the endpoint needs to speak TLS; None if it does not. Raises `Misconfigured`."""
    own = settings.tls_certificate, settings.tls_key
    return server_context("metrics", *own, settings.tls_ca)


def serve(
    metrics: Metrics,
    settings: MetricsSettings,
    name: Port = "port",
    routes: Routes | None = None,
) -> int:
    """Serve the metrics and ``routes`` over HTTP, or HTTPS with a certificate. Returns the port.

    ``name`` is the setting with the port. Raises `Misconfigured` if it is taken, or if a
    certificate cannot be used.
    """
    port = getattr(settings, name)
    try:
        ((family, *_), *_) = socket.getaddrinfo(
            settings.host or None, port, flags=socket.AI_PASSIVE
        )
        tls = partial(context_of, settings)
        tls()  # a fault of the files ends the start
        kind = type("Server", (_Server,), {"address_family": family, "tls": staticmethod(tls)})
        application = Endpoint(metrics.registry, routes or {})
        server: WSGIServer = make_server(
            settings.host, port, application, kind, handler_class=_Silent
        )
    except OSError as taken:
        raise Misconfigured(
            f"cannot serve metrics on {settings.host}:{port}: {taken.strerror}; set metrics.{name}"
        ) from taken
    Thread(target=server.serve_forever, name="endpoint", daemon=True).start()
    return int(server.server_port)


def served(
    settings: MetricsSettings, name: Port, keyspace: str, mode: str, routes: Routes | None = None
) -> Metrics:
    """The metrics of a command that also works without: a taken port is logged only.

    So is the port, if the settings leave the choice (0).
    """
    metrics = Metrics(CollectorRegistry())
    metrics.begin(keyspace, mode)
    try:
        port = serve(metrics, settings, name, routes)
        if not getattr(settings, name):
            log.info("metrics of %s on port %s", mode, port)
    except Misconfigured as taken:
        log.warning("%s", taken)
    return metrics
