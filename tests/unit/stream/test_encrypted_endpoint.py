"""The endpoint of a process by TLS: who is answered, and by which certificate."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from deploy.embedded.certificates import SERVERS, Certificates
from reconcilers.words.errors import Misconfigured
from streaming.monitoring.endpoint import health_routes, serve
from streaming.monitoring.health import Health
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.scrape import scrape
from streaming.settings import MetricsSettings
from tests.builders.tls import authority
from tests.unit.stream.test_health import HANG_S


@pytest.fixture
def made(tmp_path: Path) -> Certificates:
    return authority(tmp_path / "authority")


def settings_of(made: Certificates, clients: Path | None = None) -> MetricsSettings:
    own = {"tls_certificate": made.certificate("server"), "tls_key": made.key("server")}
    return MetricsSettings.model_validate({"port": 0, **own, "tls_ca": clients})


def served_by(settings: MetricsSettings) -> int:
    routes = health_routes(Health("supervising"))
    return serve(Metrics(CollectorRegistry()), settings, routes=routes)


def trusting(made: Certificates, shown: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=made.ca)
    if shown is not None:
        context.load_cert_chain(made.certificate(shown), made.key(shown))
    return context


def livez(port: int, context: ssl.SSLContext) -> str:
    with urlopen(f"https://127.0.0.1:{port}/livez", timeout=HANG_S, context=context) as answer:
        return str(answer.read().decode())


def test_it_speaks_tls_and_nothing_else(
    made: Certificates, capfd: pytest.CaptureFixture[str]
) -> None:
    port = served_by(settings_of(made))
    assert livez(port, trusting(made)) == "ok\n"
    with pytest.raises((URLError, ConnectionError)):
        urlopen(f"http://127.0.0.1:{port}/livez", timeout=HANG_S)
    assert livez(port, trusting(made)) == "ok\n"
    assert capfd.readouterr().err == "", "a client of another protocol is no fault of ours"


def test_a_client_that_says_nothing_holds_up_no_other(made: Certificates) -> None:
    port = served_by(settings_of(made))
    with socket.create_connection(("127.0.0.1", port)):
        assert livez(port, trusting(made)) == "ok\n"


def test_only_clients_of_the_named_authority_are_answered(
    made: Certificates, tmp_path: Path
) -> None:
    port = served_by(settings_of(made, clients=made.ca))
    assert livez(port, trusting(made, shown="reconciler")) == "ok\n"
    stranger = trusting(made)
    other = authority(tmp_path / "other")
    stranger.load_cert_chain(other.certificate("reconciler"), other.key("reconciler"))
    for context in (trusting(made), stranger):
        with pytest.raises((URLError, ssl.SSLError, ConnectionError)):
            livez(port, context)


@pytest.mark.parametrize("mutual", [False, True])
def test_a_command_of_this_host_reads_the_metrics(made: Certificates, *, mutual: bool) -> None:
    settings = settings_of(made, clients=made.ca if mutual else None)
    port = served_by(settings)
    assert scrape(settings.model_copy(update={"port": port})) is not None


def test_each_connection_has_the_certificate_of_now(made: Certificates) -> None:
    port, before = served_by(settings_of(made)), trusting(made)
    assert livez(port, before) == "ok\n"
    made.make_authority()
    made.sign("server", SERVERS)
    assert livez(port, trusting(made)) == "ok\n"
    with pytest.raises(URLError):
        livez(port, before)


def test_a_certificate_that_cannot_be_used_ends_the_start(made: Certificates) -> None:
    made.key("server").write_text("no key")
    with pytest.raises(Misconfigured, match=r"metrics\.tls_certificate: .*server\.pem is not"):
        served_by(settings_of(made))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tls_certificate": "a.pem"}, "belong together"),
        ({"tls_ca": "ca.pem"}, "tls_ca needs tls_certificate"),
    ],
)
def test_halves_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        MetricsSettings.model_validate(given)
