"""Passwords and certificates: named in the settings, read when a connection is opened."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import Field

from reconcilers.words.errors import Misconfigured
from streaming.settings.section import PREFIX, Section

PASSWORD, KAFKA_PASSWORD = f"{PREFIX}CASSANDRA__PASSWORD", f"{PREFIX}KAFKA__PASSWORD"
"""Where a worker reads the passwords: they are in no job that is sent to one."""

A_PASSWORD = Field(
    None,
    repr=False,
    description="its password; executors of a cluster read it from their environment",
)
A_PASSWORD_FILE = Field(
    None, description="file with the password instead; read again for each connection"
)
A_CA = Field(
    None, description="PEM file of the authorities to trust; else those of the operating system"
)
A_CERTIFICATE = Field(
    None, description="PEM file of our own certificate and its chain, for mutual TLS"
)
A_KEY = Field(None, description="PEM file of its key, without a password")


class WithSecrets(Section):
    """A section that is pickled without its secrets: Spark sends and stores what is pickled."""

    secrets: ClassVar[Mapping[str, str | None]]
    """The settings that are secret, with the variable from which a worker takes each."""

    def __getstate__(self) -> dict[Any, Any]:
        """Without secrets."""
        state = super().__getstate__()
        return state | {"__dict__": state["__dict__"] | dict.fromkeys(self.secrets)}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """With the secrets of this process's environment."""
        own = {name: os.environ.get(each) for name, each in self.secrets.items() if each}
        super().__setstate__(state | {"__dict__": state["__dict__"] | own})


class Login(Protocol):
    """A section of the settings that has a login."""

    name: ClassVar[str]

    @property
    def username(self) -> str | None: ...  # noqa: D102

    @property
    def password(self) -> str | None: ...  # noqa: D102

    @property
    def password_file(self) -> Path | None: ...  # noqa: D102


class Encrypted(Protocol):
    """A section of the settings that names certificates."""

    name: ClassVar[str]

    @property
    def encrypted(self) -> bool: ...  # noqa: D102

    @property
    def tls_ca(self) -> Path | None: ...  # noqa: D102

    @property
    def tls_certificate(self) -> Path | None: ...  # noqa: D102

    @property
    def tls_key(self) -> Path | None: ...  # noqa: D102

    @property
    def tls_verify_host_names(self) -> bool: ...  # noqa: D102


def login_now(settings: Login) -> tuple[str, str] | None:
    """User name and password as they are now; None if no user is named.

    Raises `Misconfigured` if the password's file cannot be read.
    """
    if settings.username is None:
        return None
    if settings.password_file is None:
        return settings.username, settings.password or ""
    return settings.username, secret_in(settings.password_file, f"{settings.name}.password_file")


def secret_in(file: Path, setting: str) -> str:
    """The secret in a file, without white space around it. Raises `Misconfigured`."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as unreadable:
        raise Misconfigured(f"{setting}: cannot read {file}: {unreadable.strerror}") from None
    except UnicodeDecodeError:  # its text has the secret
        raise Misconfigured(f"{setting}: {file} is not UTF-8") from None


def tls_context(settings: Encrypted) -> ssl.SSLContext | None:
    """What a TLS connection needs, of the files as they are now; None without TLS.

    Raises `Misconfigured` if a file cannot be used.
    """
    if not settings.encrypted:
        return None
    with _used(f"{settings.name}.tls_ca", settings.tls_ca, "no certificate in PEM form"):
        context = ssl.create_default_context(cafile=settings.tls_ca)
    context.check_hostname = settings.tls_verify_host_names
    if settings.tls_certificate is not None:
        show(context, settings.name, settings.tls_certificate, settings.tls_key)
    return context


def show(context: ssl.SSLContext, section: str, certificate: Path, key: Path | None) -> None:
    """Have connections show this certificate. Raises `Misconfigured` if it cannot be used."""
    wrong = "not a certificate in PEM form, or tls_key is not its key, or that key has a password"
    with _used(f"{section}.tls_certificate", certificate, wrong):
        context.load_cert_chain(certificate, key, password=lambda: "")


def server_context(
    section: str, certificate: Path | None, key: Path | None, clients: Path | None
) -> ssl.SSLContext | None:
    """What a server needs to speak TLS, of the files as they are now; None without a certificate.

    It answers only those whom the authorities of ``clients`` have signed, or anybody. Raises
    `Misconfigured` if a file cannot be used.
    """
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show(context, section, certificate, key)
    if clients is not None:
        with _used(f"{section}.tls_ca", clients, "no certificate in PEM form"):
            context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def refuse_halves(settings: Section) -> None:
    """Raise `ValueError` if settings of a login or of TLS stand alone."""
    given: dict[str, Any] = dict(vars(settings))
    if None not in (given.get("password"), given.get("password_file")):
        raise ValueError("give password or password_file, not both")
    if (given["tls_certificate"] is None) != (given["tls_key"] is None):
        raise ValueError("tls_certificate and tls_key belong together")


@contextmanager
def _used(setting: str, file: Path | None, wrong: str) -> Iterator[None]:
    """Raise `Misconfigured` if a file cannot be used."""
    try:
        yield
    except ssl.SSLError:
        raise Misconfigured(f"{setting}: {file} is {wrong}") from None
    except OSError as unreadable:
        raise Misconfigured(f"{setting}: cannot read {file}: {unreadable.strerror}") from None
