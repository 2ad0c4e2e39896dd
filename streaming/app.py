"""``reconcile``: the command line. Each command in `streaming.commands` puts its parts together.

Exit codes: 0 done; 1 something was found that needs a person (doctor); 2 it could not be done, with
one line that says why.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib import metadata
from io import TextIOWrapper
from pathlib import Path

from reconcilers.errors import ReconcilerError
from streaming.commands import (
    bookmark,
    canary,
    doctor,
    explain,
    findings,
    lwt_report,
    pause,
    pilot,
    replay,
    status,
    stream,
    sweep,
)
from streaming.monitoring import logs
from streaming.settings import load

PACKAGE = "james-reconciler"
NOBODY_READS = 141
"""The exit code of a command whose output nobody takes, as a shell has it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    for each in (sys.stdout, sys.stderr):
        if isinstance(each, TextIOWrapper):
            each.reconfigure(errors="replace")  # a terminal may lack characters of ours
    arguments = _parser().parse_args(argv)
    logs.configure()
    try:
        done = int(arguments.run(load(arguments.config), arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except ReconcilerError as failed:
        sys.stderr.write(f"reconcile: {failed}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return done


def version() -> str:
    """The version of what is installed, else that of the sources beside this package."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reconcile", description="Keeps Apache James's Cassandra projections true."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (
        stream,
        sweep,
        replay,
        bookmark,
        canary,
        doctor,
        status,
        explain,
        findings,
        lwt_report,
        pause,
        pilot,
    ):
        module.add_command(commands)
    pause.add_resume(commands)
    for command in commands.choices.values():
        command.add_argument(
            "--config", type=Path, metavar="FILE", help="settings (TOML); see docs/settings.md"
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
