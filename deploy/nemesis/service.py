"""Runs a command as its unit does: again after an end that a restart mends (docs/exit-codes.md).

python -m deploy.nemesis.service COMMAND …
"""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

MENDED = frozenset({3, 4, 5})
"""A refusal, a server that does not answer, an end of its own; not a wrong setting or a defect."""
PAUSE_S = 5.0


def main(command: Sequence[str], pause_s: float = PAUSE_S) -> int:
    """Run it until it ends otherwise, or SIGTERM ends it. Returns its exit code."""
    running: list[subprocess.Popen[bytes]] = []
    stopped = False

    def stop(_signum: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        for each in running:
            each.terminate()

    signal.signal(signal.SIGTERM, stop)
    code = 0
    while not stopped:
        running[:] = [subprocess.Popen(command)]
        code = running[0].wait()
        if code not in MENDED:
            break
        time.sleep(pause_s)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
