"""What a service manager gives a process in its environment."""

from __future__ import annotations

import os


def notify_socket() -> str | None:
    """The address of the datagram socket of `sd_notify(3)`, as `socket` takes it; None without one.

    systemd writes an abstract address with ``@`` in place of the zero byte.
    """
    address = os.environ.get("NOTIFY_SOCKET")
    return "\0" + address[1:] if address and address.startswith("@") else address or None
