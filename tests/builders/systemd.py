"""The socket that systemd would read."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from streaming.monitoring import systemd

HANG_S = 60.0
"""Against hangs only."""


@contextmanager
def systemd_socket(
    monkeypatch: pytest.MonkeyPatch, form: str = "a file"
) -> Iterator[socket.socket]:
    """A socket that the environment names, a file or abstract; messages come often."""
    with (
        TemporaryDirectory() as folder,  # a short path: that of a socket has 107 characters at most
        closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as ours,
    ):
        path = str(Path(folder, "notify"))
        ours.bind(path if form == "a file" else f"\0{path}")
        ours.settimeout(HANG_S)
        monkeypatch.setenv("NOTIFY_SOCKET", path if form == "a file" else f"@{path}")
        monkeypatch.setattr(systemd, "TICK", 0.01)
        yield ours


def message(ours: socket.socket) -> set[str]:
    """The lines of the next message."""
    return set(ours.recv(65536).decode().splitlines())


def message_with(ours: socket.socket, line: str) -> set[str]:
    """The next message with a line that begins so."""
    while True:
        lines = message(ours)
        if any(each.startswith(line) for each in lines):
            return lines
