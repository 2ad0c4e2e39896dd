"""Free ports on this machine."""

import os
import random
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Below the range from which systems take the near end of outgoing connections: a port that was
# chosen at the first start is then still free when a stopped server wants it back.
FIRST, LAST = 20_000, 31_999

CLAIMS = Path(tempfile.gettempdir()) / f"james-reconciler-ports-{os.getuid()}"
CLAIM_S = 600.0
"""So long (s) a port is kept for the stack that drew it. After that a server listens there."""


def is_free(port: int) -> bool:
    """Whether `port` can be listened on at 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def is_open(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something listens on `port` of this machine's address `host` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def free_ports(seed: int | None = None, claims: Path = CLAIMS) -> Iterator[int]:
    """Yield distinct free ports in random order, none that another stack has just drawn."""
    candidates = list(range(FIRST, LAST + 1))
    random.Random(seed).shuffle(candidates)
    claims.mkdir(parents=True, exist_ok=True)
    return (port for port in candidates if is_free(port) and _claimed(claims / str(port)))


def _claimed(claim: Path) -> bool:
    """Whether the port is ours from now on: two stacks that start at once draw different ones."""
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        if time.time() - claim.stat().st_mtime < CLAIM_S:
            return False
        claim.touch()
    return True
