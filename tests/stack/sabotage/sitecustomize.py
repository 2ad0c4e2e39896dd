"""kill -9 of the whole driver at a chosen point, once. Python runs this file when it starts.

For processes with this folder on their PYTHONPATH and these variables: ``SABOTAGE`` names the point
as ``before module:Class.method`` or ``after …``; ``SABOTAGE_DONE`` is a file that is made when it
has happened, and then it does not happen again; with ``SABOTAGE_DEED=time out`` nobody dies, but
the call times out. The first process is the driver; those that it starts (Spark's JVM and Python
workers) know it by ``SABOTAGE_DRIVER``.

For workers of a cluster: ``BLOWS`` names points, separated by semicolons, and ``BLOWS_AT`` a
folder. A test arms a point by a file there, named by its number: see `tests.stack.blows`.
"""

import functools
import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any


def strike_at(point: str, strike: Callable[..., None]) -> None:
    """Wrap the method of this point: ``strike`` gets its arguments."""
    moment, _, place = point.partition(" ")
    module, _, path = place.partition(":")
    owner, _, method = path.partition(".")
    of = getattr(importlib.import_module(module), owner)
    real = getattr(of, method)

    @functools.wraps(real)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if moment == "before":
            strike(arguments)
        result = real(*arguments, **named)
        if moment == "after":
            strike(arguments)
        return result

    setattr(of, method, wrapped)


def strike_once(done: Path, _arguments: object) -> None:
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


def strike_executor(armed: Path, arguments: object) -> None:
    """Send this worker's executor, and all of its processes, the signal that a test has armed.

    Once; or each time that the arguments contain a text, if the file has one after the signal.
    """
    hit = armed.with_suffix(".hit")
    try:
        name, _, text = armed.read_text().partition(" ")
        if text and text not in repr(arguments):
            return
        if text:
            hit.touch()
        else:
            armed.rename(hit)
    except FileNotFoundError:
        return
    daemon = os.getppid()
    stat = Path(f"/proc/{daemon}/stat").read_text()
    executor = int(stat.rpartition(")")[2].split()[1])
    for process in (executor, daemon, os.getpid()):
        os.kill(process, signal.Signals[name])


if "SABOTAGE" in os.environ:
    os.environ.setdefault("SABOTAGE_DRIVER", str(os.getpid()))
    once = functools.partial(strike_once, Path(os.environ["SABOTAGE_DONE"]))
    strike_at(os.environ["SABOTAGE"], once)
if "BLOWS" in os.environ:
    for number, place in enumerate(os.environ["BLOWS"].split(";")):
        armed_by = Path(os.environ["BLOWS_AT"]) / str(number)
        strike_at(place, functools.partial(strike_executor, armed_by))
