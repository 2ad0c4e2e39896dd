"""Free ports on this machine."""

import random
import socket
from collections.abc import Iterator

# Below the range from which systems take the near end of outgoing connections: a port that was
# chosen at the first start is then still free when a stopped server wants it back.
FIRST, LAST = 20_000, 31_999


def is_free(port: int) -> bool:
    """Whether `port` can be listened on at 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def is_open(port: int) -> bool:
    """Whether something listens on `port` at 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports(seed: int | None = None) -> Iterator[int]:
    """Yield distinct free ports, in random order so that two stacks starting at once differ."""
    candidates = list(range(FIRST, LAST + 1))
    random.Random(seed).shuffle(candidates)
    return (port for port in candidates if is_free(port))
