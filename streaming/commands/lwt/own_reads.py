"""How many suspects our own stream has confirmed, mostly by one serial read of the truth each."""

from __future__ import annotations

from http.client import HTTPException
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from streaming.monitoring.agents import ANSWER_S
from streaming.settings import MetricsSettings

EVERYWHERE = ("", "0.0.0.0", "::")
SUSPECTS = "reconciler_suspects"


def suspects_confirmed(settings: MetricsSettings) -> int | None:
    """Since the stream's process began; None where no stream serves its metrics."""
    host = "127.0.0.1" if settings.host in EVERYWHERE else settings.host
    host = f"[{host}]" if ":" in host else host
    try:
        with urlopen(f"http://{host}:{settings.port}/metrics", timeout=ANSWER_S) as answer:
            text = answer.read().decode()
        families = list(text_string_to_metric_families(text))
    except (OSError, HTTPException, ValueError):
        return None
    found = [each for each in families if each.name == SUSPECTS]
    if not any(each.name.startswith("reconciler_") for each in families):
        return None
    samples = [sample for each in found for sample in each.samples]
    return int(sum(sample.value for sample in samples if sample.name == f"{SUSPECTS}_total"))


def newly_confirmed(before: int | None, after: int | None) -> int | None:
    """Between two answers; all of the second where the process began anew; None if not known."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after
