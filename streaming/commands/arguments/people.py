"""Reads who orders something, why, and for how long."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from typing import Any

from checkpoints.clock import now_micros
from checkpoints.pauses import Resumed
from reconcilers.limits.pause import Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.words.errors import Misconfigured
from streaming.commands.arguments.times import duration_of, time_of

NO_REASON = "no reason given"


def until_or_for(parser: argparse.ArgumentParser) -> Any:
    """Add ``--until`` and ``--for``; returns their mutually exclusive group."""
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--until", type=time_of, metavar="TIME", help="ISO 8601; UTC without an offset"
    )
    ends.add_argument(
        "--for", type=duration_of, metavar="TIME", dest="lasts", help="90s, 30m, 2h, 1d"
    )
    return ends


def who_and_why(parser: argparse.ArgumentParser) -> None:
    """Add ``--reason`` and ``--who``."""
    parser.add_argument("--reason", default=NO_REASON, metavar="TEXT", help="kept, and logged")
    parser.add_argument("--who", metavar="NAME", help="kept, and logged (your user name)")


def who_of(arguments: argparse.Namespace) -> str:
    """Who runs the command: ``--who``, else the user's name, or the number of a nameless user id.

    Containers often have such an id.
    """
    if arguments.who:
        return str(arguments.who)
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return f"uid {os.getuid()}"


def is_agreed(question: str) -> bool:
    """Ask the question on the terminal. Raises `Misconfigured` without one."""
    if not sys.stdin.isatty():
        raise Misconfigured(f"{question} Without a terminal, --yes answers")
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def asked_for(what: str, arguments: argparse.Namespace, pilot: Pilot | None = None) -> Pause:
    """The pause that the command line asks for. Raises `Misconfigured` if its time is over."""
    now = now_micros()
    until = arguments.until if arguments.lasts is None else now + arguments.lasts
    if until is not None and until <= now:
        raise Misconfigured("the time of --until is over: nothing is paused")
    return Pause(what, now, who_of(arguments), arguments.reason, until, pilot)


def resumed_by(arguments: argparse.Namespace) -> Resumed:
    """Who ends a pause now, and why."""
    return Resumed(now_micros(), who_of(arguments), arguments.reason)
