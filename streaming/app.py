"""``reconcile``: the command line.

Each command is a module of `streaming.commands`. A command that fails writes one line to standard
error and ends with the exit code of its error (`reconcilers.words.errors`, docs/exit-codes.md).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib import metadata
from io import TextIOWrapper
from pathlib import Path

from reconcilers.words.errors import ReconcilerError
from reconcilers.words.exit_codes import MEANINGS, ExitCode
from streaming.commands.again import bookmark, replay, sweep
from streaming.commands.doctor import command as doctor
from streaming.commands.look import explain, status
from streaming.commands.lwt import report as lwt_report
from streaming.commands.person import findings, pause, pilot
from streaming.commands.running import canary, stream
from streaming.commands.running.signals import ended_by_sigterm
from streaming.monitoring import logs
from streaming.settings import load

log = logging.getLogger("reconciler")

PACKAGE = "james-reconciler"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    for each in (sys.stdout, sys.stderr):
        if isinstance(each, TextIOWrapper):
            each.reconfigure(errors="replace")  # a terminal may lack characters of ours
    arguments = _parser().parse_args(argv)
    logs.configure()
    try:
        with ended_by_sigterm():
            done = int(arguments.run(load(arguments.config), arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.NOBODY_READS
    except ReconcilerError as failed:
        return _ended_by(failed, failed.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as failed:
        raise SystemExit(_ended_by(failed, ExitCode.DEFECT)) from failed
    return done


def _ended_by(failed: Exception, code: ExitCode) -> int:
    """Write one line for an error and return its code. A defect's traceback goes to the log."""
    text = str(failed)
    if code is ExitCode.DEFECT:
        log.critical("a defect of the reconciler", exc_info=failed)
        text = f"a defect of the reconciler: {failed!r}; the log has its traceback"
    sys.stderr.write(f"reconcile: {' '.join(text.split())}\n")
    return code


def version() -> str:
    """The version of the installed package, or of the sources if none is installed."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reconcile",
        description="Keeps Apache James's Cassandra projections true.",
        epilog="\n".join(["exit codes:", *(f"  {code:<3} {MEANINGS[code]}" for code in ExitCode)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
