"""Translation of the Kafka client's errors to `reconcilers.words.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError

from reconcilers.words.errors import Rejected, Unreachable
from streaming.settings import KafkaSettings, fault

OTHER_PORT = 9092
"""Kafka's port, where a broker is named without one."""


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise the client's errors as `Unreachable`; ``doing`` begins the message."""
    try:
        yield
    except KafkaError as failed:
        raise unreachable(doing, failed) from failed


def unreachable(doing: str, failed: KafkaError) -> Unreachable:
    """The error for a failed call; ``doing`` begins the message."""
    rejected = isinstance(failed, SaslAuthenticationFailedError | AuthorizationError)
    return (Rejected if rejected else Unreachable)(f"{doing}: {_why(failed)}")


@contextmanager
def connecting(settings: KafkaSettings) -> Iterator[None]:
    """Raise the client's errors of a first connection as `Unreachable`, with the cause."""
    try:
        yield
    except KafkaError as failed:
        servers, cause = settings.bootstrap_servers, _cause(settings, failed)
        raise type(cause)(f"no Kafka broker answers at {servers}: {cause}") from failed


def _cause(settings: KafkaSettings, failed: KafkaError) -> Unreachable:
    """Why no broker could be asked: kafka-python says no more than that in the end.

    If a connection is possible, and no request is answered, it is the login.
    """
    found = fault(settings, _brokers(settings))
    if found is not None:
        return found
    if settings.logs_in:
        told = "the login is refused (kafka.sasl_mechanism, username, password)"
        return Rejected(f"{told}: {failed}")
    return Unreachable(f"if it asks for a login, set kafka.security_protocol: {failed}")


def _why(failed: KafkaError) -> str:
    """The error of a call in one line."""
    match failed:
        case SaslAuthenticationFailedError():
            return f"the login is refused (kafka.username, kafka.password): {failed}"
        case AuthorizationError():
            return f"the user lacks a right (deploy/kafka/acls.sh): {type(failed).__name__}"
    return str(failed)


def _brokers(settings: KafkaSettings) -> Iterator[tuple[str, int]]:
    for each in settings.bootstrap_servers.split(","):
        host, _, port = each.strip().rpartition(":")
        yield (
            (host.strip("[]"), int(port)) if host and port.isdigit() else (each.strip(), OTHER_PORT)
        )
