"""How each client of Kafka connects: kafka-python here, and the Java client in Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from kafka.errors import KafkaError

from reconcilers.words.errors import Misconfigured, Unreachable
from streaming.settings import KAFKA_PASSWORD, KafkaSettings, login_now, tls_context

log = logging.getLogger("reconciler")

LOGIN_FILE = "kafka-login.properties"
"""The login of Spark's clients, in the temporary folder of the process."""
LOGIN = "sasl.jaas.config"
PROVIDERS = "org.apache.kafka.common.config.provider"
MODULES = "org.apache.kafka.common.security"


class Closable(Protocol):
    """A client of kafka-python."""

    def close(self) -> Any:
        """Close its connections."""


C = TypeVar("C", bound=Closable)


class Renewed(Generic[C]):
    """A client of kafka-python, replaced when the file of its password has another content.

    kafka-python keeps the password with which a client was made. It reads certificates for each
    connection.
    """

    def __init__(self, settings: KafkaSettings, make: Callable[[dict[str, Any]], C]) -> None:
        """Make the first one. Raises `Misconfigured`, and what ``make`` raises."""
        self._settings = settings
        self._make = make
        self._one = Lock()
        self._options = python_options(settings)
        self._client = make(self._options)

    def now(self) -> C:
        """The client, which stays the same for at least one call of it.

        Raises what ``make`` raises. While a file cannot be used, as in the middle of a replacement,
        it is the one before.
        """
        if self._settings.password_file is not None:
            try:
                options = python_options(self._settings)
            except Misconfigured as meanwhile:
                log.warning("the connections to Kafka stay as they are: %s", meanwhile)
                return self._client
            with self._one:
                if options != self._options:
                    self.replace(options)
        return self._client

    def replace(self, options: dict[str, Any] | None = None) -> None:
        """Replace the client. Raises `Misconfigured`, and what ``make`` raises."""
        options = options or python_options(self._settings)
        client = self._make(options)
        self.close()
        self._options, self._client = options, client

    def close(self) -> None:
        """Close the connections."""
        with suppress(KafkaError):
            self._client.close()


def python_options(settings: KafkaSettings) -> dict[str, Any]:
    """The options of a client of kafka-python, with the password as it is now.

    Raises `Misconfigured` if a file cannot be used.
    """
    tls_context(settings)  # the client's own error does not name the file
    options: dict[str, Any] = {"bootstrap_servers": settings.bootstrap_servers.split(",")}
    options["security_protocol"] = settings.security_protocol
    if settings.encrypted:
        options["ssl_check_hostname"] = settings.tls_verify_host_names
        options["ssl_cafile"] = settings.tls_ca
        options["ssl_certfile"] = settings.tls_certificate
        options["ssl_keyfile"] = settings.tls_key
    if settings.logs_in and (login := login_now(settings)):
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"], options["sasl_plain_password"] = login
    return options


def spark_options(settings: KafkaSettings, folder: Path | None) -> dict[str, str]:
    """The options with which Spark's clients connect. No option holds a secret.

    They name files that the Java client reads when it is made. On this host the login is one,
    written to ``folder``. On a cluster, without ``folder``, each process has the password in its
    environment. Raises `Misconfigured` if a file cannot be used.
    """
    tls_context(settings)
    return {f"kafka.{name}": value for name, value in _java_options(settings, folder)}


def files_version(settings: KafkaSettings) -> Iterator[str]:
    """A number that changes with each file for TLS or login; nothing if there are none.

    It is taken before the files are read: then no reader has older files than its number says.
    Raises `Unreachable` while one is being replaced.
    """
    files = (settings.tls_ca, settings.tls_certificate, settings.tls_key, settings.password_file)
    try:
        times = [each.stat().st_mtime_ns for each in files if each is not None]
    except OSError as meanwhile:
        raise Unreachable(f"{meanwhile.filename}: {meanwhile.strerror}") from meanwhile
    if times:
        yield f"{sum(times):x}"


def _java_options(settings: KafkaSettings, folder: Path | None) -> Iterator[tuple[str, str]]:
    yield "bootstrap.servers", settings.bootstrap_servers
    yield "security.protocol", settings.security_protocol
    if settings.encrypted or settings.logs_in:
        yield "config.providers", "directory,env,file"
        for name, kind in (("directory", "Directory"), ("env", "EnvVar"), ("file", "File")):
            yield f"config.providers.{name}.class", f"{PROVIDERS}.{kind}ConfigProvider"
    if settings.encrypted:
        if not settings.tls_verify_host_names:
            yield "ssl.endpoint.identification.algorithm", ""
        if settings.tls_ca is not None:
            yield "ssl.truststore.type", "PEM"
            yield "ssl.truststore.location", str(settings.tls_ca.absolute())
        if settings.tls_certificate is not None and settings.tls_key is not None:
            yield "ssl.keystore.type", "PEM"
            yield "ssl.keystore.certificate.chain", _content_of(settings.tls_certificate)
            yield "ssl.keystore.key", _content_of(settings.tls_key)
    if settings.logs_in:
        yield "sasl.mechanism", str(settings.sasl_mechanism)
        yield LOGIN, _login(settings, folder)


def _content_of(file: Path) -> str:
    """How the Java client names the content of a file."""
    whole = file.absolute()
    return f"${{directory:{whole.parent}:{whole.name}}}"


def _login(settings: KafkaSettings, folder: Path | None) -> str:
    if folder is None:
        return _jaas(settings, _quoted(settings.username or ""), f"${{env:{KAFKA_PASSWORD}}}")
    username, password = login_now(settings) or ("", "")
    jaas = _jaas(settings, _quoted(username), _quoted(password))
    file = folder / LOGIN_FILE
    _keep(file, f"{LOGIN}={_escaped(jaas)}\n")
    return f"${{file:{file}:{LOGIN}}}"


def _jaas(settings: KafkaSettings, username: str, password: str) -> str:
    plain = settings.sasl_mechanism == "PLAIN"
    module = "plain.PlainLoginModule" if plain else "scram.ScramLoginModule"
    return f'{MODULES}.{module} required username="{username}" password="{password}";'


def _quoted(text: str) -> str:
    """A text as it stands between quotes in a login of Java's."""
    return _escaped(text).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _keep(file: Path, text: str) -> None:
    """Write a file that only we read; readers see the old text or the new one."""
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return
    with NamedTemporaryFile("w", dir=file.parent, encoding="utf-8", delete=False) as fresh:
        fresh.write(text)
    Path(fresh.name).replace(file)
