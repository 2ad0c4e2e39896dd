"""Translation of the driver's errors to those of `reconcilers.words.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cassandra import (
    AuthenticationFailed,
    CoordinationFailure,
    DriverException,
    OperationTimedOut,
    ReadFailure,
    RequestValidationException,
    Timeout,
    Unavailable,
    UnresolvableContactPoints,
    UnsupportedOperation,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.protocol import ConfigurationException as ConfigurationMessage
from cassandra.protocol import (
    ErrorMessage,
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    SyntaxException,
    UnauthorizedErrorMessage,
)
from cassandra.protocol import InvalidRequestException as InvalidRequestMessage

from reconcilers.words.errors import Overloaded, ReadFailed, ReconcilerError, Refused, Unreachable

NO_ANSWER = (
    NoHostAvailable,
    OperationTimedOut,
    Timeout,
    ConnectionException,
    UnresolvableContactPoints,
    OSError,
)
NOT_NOW = (
    Unavailable,
    CoordinationFailure,
    ConnectionBusy,
    OverloadedErrorMessage,
    IsBootstrappingErrorMessage,
)
NEVER = (
    RequestValidationException,
    AuthenticationFailed,
    UnsupportedOperation,
    InvalidRequestMessage,
    UnauthorizedErrorMessage,
    SyntaxException,
    ConfigurationMessage,
)

OF_NODES = frozenset({2, 5})
"""Cassandra's codes of a replica's failure that is not the read's own: TIMEOUT, NODE_DOWN."""


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise the driver's errors as `Unreachable`, `Overloaded`, `ReadFailed` or `Refused`.

    ``doing`` names the action in the message, for example "reading lineage".
    """
    try:
        yield
    except (DriverException, NoHostAvailable, ErrorMessage, ConnectionException, OSError) as error:
        raise _translated(error, doing) from error
    except ConnectionBusy as error:
        raise _translated(error, doing) from error


def _translated(error: Exception, doing: str) -> ReconcilerError:
    message = f"{doing}: {_said(error)}"
    if isinstance(error, NEVER):
        return Refused(message)
    if isinstance(error, NoHostAvailable):
        return _from_every_host(error, message)
    if _is_of_the_read(error):
        return ReadFailed(message)
    if isinstance(error, NOT_NOW):
        return Overloaded(message)
    if isinstance(error, NO_ANSWER):
        return Unreachable(message)
    return Overloaded(message)


def _is_of_the_read(error: Exception) -> bool:
    """Whether the read itself failed: not if each replica failed for itself, late or down."""
    if isinstance(error, ReadFailure):
        codes = frozenset((error.error_code_map or {}).values())
        return not codes or not codes <= OF_NODES
    return type(error) is DriverException  # a failed decoding


def _from_every_host(error: NoHostAvailable, message: str) -> ReconcilerError:
    causes = list(error.errors.values()) if isinstance(error.errors, dict) else []
    if causes and all(isinstance(cause, NEVER) for cause in causes):
        return Refused(message)
    if any(isinstance(cause, NOT_NOW) for cause in causes):
        return Overloaded(message)
    return Unreachable(message)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
