"""The metrics that the stream of this host serves, as another process reads them."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from http.client import HTTPException
from urllib.request import urlopen

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from streaming.monitoring.agents import ANSWER_S
from streaming.settings import MetricsSettings

EVERYWHERE = ("", "0.0.0.0", "::")


def scrape(settings: MetricsSettings) -> Sequence[Metric] | None:
    """All metrics at the port of a stream; None if no stream serves its metrics there."""
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    host = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.tls_certificate is None else "https"
    address = f"{scheme}://{host}:{settings.port}/metrics"
    try:
        with urlopen(address, timeout=ANSWER_S, context=_trusting_it(settings)) as answer:
            text = answer.read().decode()
        families = list(text_string_to_metric_families(text))
    except (OSError, HTTPException, ValueError):
        return None
    return families if any(each.name.startswith("reconciler_") for each in families) else None


def gauge(settings: MetricsSettings, name: str) -> float | None:
    """The value of a gauge without labels; None if it is not exported, or no stream serves it."""
    found = (each for each in scrape(settings) or () if each.name == name)
    return next((sample.value for each in found for sample in each.samples), None)


def _trusting_it(settings: MetricsSettings) -> ssl.SSLContext | None:
    """It has this very certificate, whatever names stand in it; a client shows the same one."""
    if settings.tls_certificate is None:
        return None
    context = ssl.create_default_context(cafile=settings.tls_certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.tls_ca is not None:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    return context
