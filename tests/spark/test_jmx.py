"""JMX through our own JVM, asked of another JVM that wants a login. No Cassandra is needed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from py4j.java_gateway import launch_gateway

from deploy.embedded.certificates import STORE_PASSWORD, Certificates
from deploy.embedded.ports import free_ports
from reconcilers.words.errors import Misconfigured, Refused, Unreachable
from streaming.commands.lwt.beans import JmxLogin, beans_of
from streaming.commands.lwt.jvm import Jvm
from tests.builders.tls import authority

PATIENCE_S = 60.0
JMX = "-Dcom.sun.management.jmxremote"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The JMX port of a JVM that lets in a monitor with a password only."""
    yield from serving(tmp_path_factory.mktemp("jmx"), [f"{JMX}.ssl=false"])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def encrypted(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[int]:
    """The same by TLS, its registry too."""
    certificates.export("server")
    store = "-Djavax.net.ssl.keyStore"
    options = [
        f"{JMX}.ssl=true",
        f"{JMX}.registry.ssl=true",
        f"{store}={certificates.key_store('server')}",
        f"{store}Password={STORE_PASSWORD}",
    ]
    yield from serving(tmp_path_factory.mktemp("encrypted"), options)


def serving(folder: Path, more: list[str]) -> Iterator[int]:
    port = next(free_ports())
    passwords, access = folder / "passwords", folder / "access"
    passwords.write_text("monitor secret\n")
    passwords.chmod(0o600)
    access.write_text("monitor readonly\n")
    options = [
        f"{JMX}.port={port}",
        f"{JMX}.host=127.0.0.1",
        "-Djava.rmi.server.hostname=127.0.0.1",
        f"{JMX}.password.file={passwords}",
        f"{JMX}.access.file={access}",
        *more,
    ]
    *_, process = launch_gateway(javaopts=options, die_on_exit=True, return_proc=True)
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    made = Jvm(PATIENCE_S)
    yield made
    made.close()


def test_a_wrong_login_is_refused(jvm: Jvm, guarded: int) -> None:
    for login in (
        JmxLogin("127.0.0.1", guarded),
        JmxLogin("127.0.0.1", guarded, "monitor", "guessed"),
    ):
        with pytest.raises(Refused, match=f"JMX at 127.0.0.1:{guarded}: .*SecurityException"):
            beans_of(jvm, login, PATIENCE_S)


def test_a_right_login_is_let_in_and_what_is_no_cassandra_is_said(jvm: Jvm, guarded: int) -> None:
    login = JmxLogin("127.0.0.1", guarded, "monitor", "secret")
    with pytest.raises(Unreachable, match=r"InstanceNotFoundException.*StorageService"):
        beans_of(jvm, login, PATIENCE_S)


def test_by_tls_the_authority_of_the_settings_is_trusted_and_no_other(
    encrypted: int, certificates: Certificates, tmp_path: Path
) -> None:
    trusted = {
        certificates.ca: "InstanceNotFoundException",
        authority(tmp_path).ca: "PKIX path",
    }
    for ca, said in trusted.items():
        login = JmxLogin("127.0.0.1", encrypted, "monitor", "secret", ca)
        with closing(Jvm(PATIENCE_S)) as jvm, pytest.raises(Unreachable, match=said):
            beans_of(jvm, login, PATIENCE_S)


def test_without_tls_an_encrypted_one_is_not_reached(jvm: Jvm, encrypted: int) -> None:
    with pytest.raises(Unreachable, match=f"JMX at 127.0.0.1:{encrypted}"):
        beans_of(jvm, JmxLogin("127.0.0.1", encrypted, "monitor", "secret"), PATIENCE_S)


def test_where_nobody_listens_it_is_said(jvm: Jvm) -> None:
    port = next(free_ports())
    with pytest.raises(Unreachable, match=f"nothing answers JMX at 127.0.0.1:{port}"):
        beans_of(jvm, JmxLogin("127.0.0.1", port), PATIENCE_S)


def test_without_java_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Misconfigured, match="install Java 17, or set JAVA_HOME"):
        Jvm(PATIENCE_S)
