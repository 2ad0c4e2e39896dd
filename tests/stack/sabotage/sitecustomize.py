"""kill -9 of the whole driver at a chosen point, once. Python runs this file when it starts.

For processes with this folder on their PYTHONPATH and these variables: ``SABOTAGE`` names the point
as ``before module:Class.method`` or ``after …``; ``SABOTAGE_DONE`` is a file that is made when it
has happened, and then it does not happen again; with ``SABOTAGE_DEED=time out`` nobody dies, but
the call times out. The first process is the driver; those that it starts (Spark's JVM and Python
workers) know it by ``SABOTAGE_DRIVER``.
"""

import functools
import importlib
import os
import signal
from pathlib import Path
from typing import Any


def strike_at(point: str, done: Path) -> None:
    """Wrap the method of this point."""
    moment, _, place = point.partition(" ")
    module, _, path = place.partition(":")
    owner, _, method = path.partition(".")
    of = getattr(importlib.import_module(module), owner)
    real = getattr(of, method)

    @functools.wraps(real)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if moment == "before":
            strike_once(done)
        result = real(*arguments, **named)
        if moment == "after":
            strike_once(done)
        return result

    setattr(of, method, wrapped)


def strike_once(done: Path) -> None:
    """End the driver, its JVM, and this process; or time out."""
    try:
        done.touch(exist_ok=False)
    except FileExistsError:
        return
    if os.environ.get("SABOTAGE_DEED") == "time out":
        errors = importlib.import_module("reconcilers.words.errors")
        raise errors.Unreachable("no answer came in time")
    os.killpg(int(os.environ["SABOTAGE_DRIVER"]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if "SABOTAGE" in os.environ:
    os.environ.setdefault("SABOTAGE_DRIVER", str(os.getpid()))
    strike_at(os.environ["SABOTAGE"], Path(os.environ["SABOTAGE_DONE"]))
