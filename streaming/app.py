"""``reconcile``: the command line. Each command in `streaming.commands` puts its parts together.

Exit codes: 0 done; 1 something was found that needs a person (doctor); 2 it could not be done, with
one line that says why.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from reconcilers.errors import ReconcilerError
from streaming.commands import canary, doctor, findings, pause, status, stream, sweep
from streaming.monitoring import logs
from streaming.settings import load

PACKAGE = "james-reconciler"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    logs.configure()
    try:
        return int(arguments.run(load(arguments.config), arguments))
    except ReconcilerError as failed:
        sys.stderr.write(f"reconcile: {failed}\n")
        return 2
    except KeyboardInterrupt:
        return 130


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
    for module in (stream, sweep, canary, doctor, status, findings, pause):
        module.add_command(commands)
    pause.add_resume(commands)
    for command in commands.choices.values():
        command.add_argument(
            "--config", type=Path, metavar="FILE", help="settings (TOML); see docs/settings.md"
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
