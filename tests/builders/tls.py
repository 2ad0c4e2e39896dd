"""An authority, and servers that speak TLS, or not, in threads of the test."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from deploy.embedded.certificates import SERVERS, Certificates

HERE = "127.0.0.1"


def authority(folder: Path) -> Certificates:
    """With a server's certificate and a client's."""
    made = Certificates(folder)
    made.make_authority()
    made.sign("server", SERVERS)
    made.sign("reconciler")
    return made


@contextmanager
def server(context: ssl.SSLContext | None) -> Iterator[int]:
    """The port of a server that waits for a request: by TLS, or else plain.

    The plain one closes the connection on anything, as Kafka does with what is no request.
    """
    with socket.create_server((HERE, 0)) as listening:
        thread = Thread(target=_serve, args=(listening, context), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listening: socket.socket, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            plain, _ = listening.accept()
        except OSError:
            return
        with plain, suppress(OSError):
            plain.settimeout(10)
            if context is None:
                plain.recv(1)
                continue
            with context.wrap_socket(plain, server_side=True) as made:
                made.recv(1)


def server_context(made: Certificates, name: str = "server") -> ssl.SSLContext:
    """What a server shows that asks clients for no certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate(name), made.key(name))
    return context


def asking_context(made: Certificates) -> ssl.SSLContext:
    """What a server shows that asks clients for one."""
    context = server_context(made)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(made.ca)
    return context
