"""Why a server cannot be connected to: what clients of Cassandra and Kafka do not say themselves.

It connects as they do, and looks at the first bytes only.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable

from reconcilers.words.errors import Misconfigured, Rejected, Unreachable
from streaming.settings.secrets import Encrypted, tls_context

ANSWER_S = 5.0
"""Seconds for a connection, and for a handshake."""
REFUSAL_S = 1.0
"""Seconds in which a server refuses a certificate, after the handshake (TLS 1.3)."""
OTHER_NAME = (62, 64)
"""OpenSSL's codes: the certificate names other hosts, other addresses."""
EXPIRED, NOT_YET = 10, 9
PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
"""OpenSSL's reasons where the other side does not speak TLS."""
NO_TLS = "does not speak TLS, and SECTION is set to connect by TLS"
SPEAKS_TLS = "speaks TLS, and SECTION is set to connect without it"

Address = tuple[str, int]


def fault(settings: Encrypted, servers: Iterable[Address]) -> Unreachable | None:
    """Why these servers cannot be connected to, in one line; None if all can be, as far as seen.

    The line is the first server's that answers and has a fault, with the setting to look at:
    `Rejected`. If none answers with a fault, it is the first server's that does not answer.
    """
    away: Unreachable | None = None
    for host, port in servers:
        try:
            found = _of_server(host, port, tls_context(settings))
        except Misconfigured as wrong:
            return Rejected(str(wrong))
        except TimeoutError:
            away = away or Unreachable(f"{host} port {port} does not answer")
            continue
        except OSError as failed:
            told = f"cannot be reached: {failed.strerror or failed}"
            away = away or Unreachable(f"{host} port {port} {told}")
            continue
        if found is not None:
            return Rejected(f"{host} port {port} {found.replace('SECTION', settings.name)}")
    return away


def _of_server(host: str, port: int, context: ssl.SSLContext | None) -> str | None:
    """What it answers that is a fault. Raises `OSError` if it does not answer."""
    with socket.create_connection((host, port), timeout=ANSWER_S) as plain:
        return _without_tls(plain) if context is None else _with_tls(plain, host, context)


def _without_tls(plain: socket.socket) -> str | None:
    """The fault of a connection without TLS: the server speaks it."""
    anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
    try:
        with anything.wrap_socket(plain):
            return SPEAKS_TLS
    except ssl.SSLError as failed:
        return None if failed.reason in PLAIN else SPEAKS_TLS
    except OSError:
        return None


def _with_tls(plain: socket.socket, host: str, context: ssl.SSLContext) -> str | None:
    """The fault of a connection by TLS."""
    try:
        made = context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as failed:
        return _of_its_certificate(failed)
    except ssl.SSLError as failed:
        return NO_TLS if failed.reason in PLAIN else _refused(failed)
    except TimeoutError:
        raise
    except OSError:
        return NO_TLS
    with made:
        return _after_handshake(made)


def _after_handshake(made: ssl.SSLSocket) -> str | None:
    """A server may refuse a certificate after the handshake (TLS 1.3); else it waits for us."""
    made.settimeout(REFUSAL_S)
    try:
        closed = made.recv(1) == b""
    except TimeoutError:
        return None
    except OSError as failed:
        return _refused(failed)
    return _refused("it closes the connection") if closed else None


def _refused(why: OSError | str) -> str:
    told = (getattr(why, "reason", None) or str(why)).replace("_", " ").lower()
    return f"refuses our certificate, or asks for one (SECTION.tls_certificate): {told}"


def _of_its_certificate(failed: ssl.SSLCertVerificationError) -> str:
    if failed.verify_code == EXPIRED:
        return "has a certificate that has expired"
    if failed.verify_code == NOT_YET:
        return "has a certificate that is not valid yet: compare the clocks"
    if failed.verify_code in OTHER_NAME:
        return f"has a certificate for other hosts ({failed.verify_message})"
    return f"has a certificate of no authority in SECTION.tls_ca ({failed.verify_message})"
