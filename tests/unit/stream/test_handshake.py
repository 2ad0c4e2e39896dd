"""A fault of a connection is one line that names it (real servers: `stack/test_secure.py`)."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded.certificates import Certificates
from reconcilers.words.errors import Rejected, Unreachable
from streaming.settings import KafkaSettings, fault, handshake
from tests.builders.tls import HERE, asking_context, authority, server, server_context

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return authority(tmp_path_factory.mktemp("authority"))


def encrypted(made: Certificates, **more: Any) -> KafkaSettings:
    given = {"security_protocol": "SSL", "tls_ca": made.ca} | more
    return KafkaSettings.model_validate(given)


def showing(
    made: Certificates, of: Certificates | None = None, name: str = "reconciler"
) -> KafkaSettings:
    by = of or made
    return encrypted(made, tls_certificate=by.certificate(name), tls_key=by.key(name))


@contextmanager
def found(
    settings: KafkaSettings, port: int, host: str = HERE, others: tuple[int, ...] = ()
) -> Iterator[str]:
    failed = fault(settings, [*((host, each) for each in others), (host, port)])
    assert type(failed) is Rejected
    told = str(failed)
    assert "\n" not in told
    assert told.startswith(f"{host} port {port} ")
    yield told


def test_a_connection_that_works_has_no_fault(made: Certificates) -> None:
    with server(server_context(made)) as port:
        assert fault(encrypted(made), [(HERE, port)]) is None
        assert fault(encrypted(made), [("localhost", port)]) is None
    with server(asking_context(made)) as port:
        assert fault(showing(made), [(HERE, port)]) is None
    with server(None) as port:
        assert fault(KafkaSettings(), [(HERE, port)]) is None


def test_an_authority_that_is_not_trusted(made: Certificates, tmp_path: Path) -> None:
    other = authority(tmp_path)
    with server(server_context(made)) as port, found(encrypted(other), port) as told:
        assert "has a certificate of no authority in kafka.tls_ca" in told


def test_a_certificate_that_has_expired(made: Certificates) -> None:
    made.sign("expired", [f"IP:{HERE}"], days="-1")
    with server(server_context(made, "expired")) as port, found(encrypted(made), port) as told:
        assert "has a certificate that has expired" in told


def test_a_certificate_of_another_host(made: Certificates) -> None:
    made.sign("other", ["DNS:elsewhere", "IP:10.0.0.1"])
    with server(server_context(made, "other")) as port:
        for host in (HERE, "localhost"):
            with found(encrypted(made), port, host) as told:
                assert "has a certificate for other hosts" in told
        not_verified = encrypted(made, tls_verify_host_names=False)
        assert fault(not_verified, [(HERE, port)]) is None


def test_plain_where_tls_is_spoken(made: Certificates) -> None:
    for context in (server_context(made), asking_context(made)):
        with server(context) as port, found(KafkaSettings(), port) as told:
            assert told.endswith("speaks TLS, and kafka is set to connect without it")


def test_tls_where_plain_is_spoken(made: Certificates) -> None:
    with server(None) as port, found(encrypted(made), port) as told:
        assert told.endswith("does not speak TLS, and kafka is set to connect by TLS")


def test_a_certificate_of_ours_that_the_server_refuses(made: Certificates, tmp_path: Path) -> None:
    other = authority(tmp_path)
    made.sign("old", days="-1")
    refused = (encrypted(made), showing(made, other), showing(made, name="old"))
    with server(asking_context(made)) as port:
        for settings in refused:
            with found(settings, port) as told:
                assert "refuses our certificate, or asks for one (kafka.tls_certificate)" in told


def test_nobody_listens() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    away = fault(KafkaSettings(), [(HERE, port)])
    assert type(away) is Unreachable
    assert str(away) == f"{HERE} port {port} cannot be reached: Connection refused"


def test_a_server_that_accepts_and_says_nothing_does_not_answer(
    made: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is suspended, say: a start waits for it."""
    monkeypatch.setattr(handshake, "ANSWER_S", 0.05)
    with socket.create_server((HERE, 0)) as silent:
        port = silent.getsockname()[1]
        away = fault(encrypted(made), [(HERE, port)])
    assert type(away) is Unreachable
    assert str(away) == f"{HERE} port {port} does not answer"


def test_one_that_answers_with_a_fault_counts_more_than_one_that_is_away(
    made: Certificates,
) -> None:
    with server(None) as plain, found(encrypted(made), plain, others=(1,)) as told:
        assert "does not speak TLS" in told


def test_the_first_server_with_a_fault_is_named(made: Certificates) -> None:
    with server(server_context(made)) as well, server(None) as plain:
        told = fault(encrypted(made), [(HERE, well), (HERE, plain)])
    assert str(told).startswith(f"{HERE} port {plain} ")


def test_a_file_that_cannot_be_used_is_the_fault(made: Certificates, tmp_path: Path) -> None:
    assert str(fault(encrypted(made, tls_ca=tmp_path / "none"), [(HERE, 1)])) == (
        f"kafka.tls_ca: cannot read {tmp_path / 'none'}: No such file or directory"
    )
