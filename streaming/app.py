"""``reconcile``: the command line.

Each command is a module of `streaming.commands`, imported when it is chosen. A command that fails
writes one line to standard error and ends with the exit code of its error
(`reconcilers.words.errors`, docs/exit-codes.md).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from reconcilers.words.errors import ReconcilerError, WrongSettings
from reconcilers.words.exit_codes import MEANINGS, ExitCode
from streaming.commands.running.signals import Signalled, ended_by_signals
from streaming.monitoring import logs
from streaming.monitoring.plain import PlainText, plain
from streaming.monitoring.version import version

if TYPE_CHECKING:
    from streaming.settings import Settings

log = logging.getLogger("reconciler")

COMPLETION = "completion"
"""The command that needs the options of all others."""
FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}
"""How a shell completes a path, in the words of shtab."""
COMMANDS = {
    "stream": ("running.stream", "find, and in repair mode repair, continuously"),
    "sweep": ("again.sweep", "compare everything; what differs is left to the stream"),
    "replay": (
        "again.replay",
        "look again at events from a Kafka offset, a time, or a bookmark on",
    ),
    "bookmark": ("again.bookmark", "name up to where the stream has settled, to replay from"),
    "canary": ("running.canary", "write canaries, also while no stream runs"),
    "doctor": ("doctor.command", "check everything that the stream needs, and say what to do"),
    "status": ("look.status", "lag, open findings, breakers, who holds the lease"),
    "jars": ("running.jars", "fetch the jars with which Spark reads Kafka"),
    "config": ("look.config", "show or check the settings, or print an example of a file"),
    COMPLETION: ("look.completion", "print a script with which bash or zsh completes commands"),
    "report": ("look.report", "what happened in some days, or would have: text, JSON or HTML"),
    "explain": (
        "look.explain",
        "both sides of a message or mailbox, and what would be done, or why not",
    ),
    "findings": (
        "person.findings",
        "list, export, retry, accept and undo what was found and repaired",
    ),
    "mailboxes": (
        "mailboxes.command",
        "conflicts between the tables mailbox and mailboxpathv3; --fix while James is offline",
    ),
    "lwt-report": (
        "lwt.report",
        "what lightweight transactions cost, by table, over an interval",
    ),
    "pause": ("person.pause", "stop writing at once: everything, removals, or one projection"),
    "resume": (
        "person.resume",
        "end pauses and close the breakers; what was held is looked at again",
    ),
    "pilot": ("person.pilot", "repair only what is named here, hold everything else"),
}
"""Each command's module below `streaming.commands`, and its line of the help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    for each in (sys.stdout, sys.stderr):
        if isinstance(each, TextIOWrapper):
            each.reconfigure(errors="replace")  # a terminal may lack characters of ours
    try:
        with ended_by_signals(), redirect_stdout(cast("TextIO", PlainText(sys.stdout))):
            arguments = parsed(sys.argv[1:] if argv is None else argv)
            logs.configure()
            from streaming import settings  # not at the top: `--help` needs none

            arguments.config = settings.settings_file(arguments.config)
            done = int(arguments.run(_loaded(arguments), arguments))
            sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.NOBODY_READS
    except ReconcilerError as failed:
        return _ended_by(failed, failed.exit_code)
    except Signalled as signalled:
        return _ended_by(signalled, signalled.exit_code)
    except Exception as failed:
        raise SystemExit(_ended_by(failed, ExitCode.DEFECT)) from failed
    return done


def _loaded(arguments: argparse.Namespace) -> Settings:
    """The settings, as the command loads them if it has a way of its own."""
    from streaming.settings import load

    if "load" in arguments:
        return cast("Settings", arguments.load(arguments))
    return load(arguments.config)


def _ended_by(failed: BaseException, code: ExitCode) -> int:
    """Write one line for an error and return its code. A defect's traceback goes to the log.

    Settings that are wrong are a line each.
    """
    texts = failed.problems if isinstance(failed, WrongSettings) else (str(failed),)
    if code is ExitCode.DEFECT:
        log.critical("a defect of the reconciler", exc_info=failed)
        texts = (f"a defect of the reconciler: {failed!r}; the log has its traceback",)
    for text in texts:
        sys.stderr.write(f"reconcile: {plain(' '.join(text.split()))}\n")
    return code


class Parser(argparse.ArgumentParser):
    """Answers a wrong argument with one line, as all that fails here."""

    def error(self, message: str) -> NoReturn:
        """Write the line and exit with the code of a wrong argument."""
        self.exit(ExitCode.USAGE, f"{self.prog}: {plain(message)} (see {self.prog} --help)\n")


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of one command; ``run`` runs it. Raises `SystemExit`, for ``--help`` too."""
    parser = Parser(
        prog="reconcile",
        allow_abbrev=False,
        description="Keeps Apache James's Cassandra projections true.",
        epilog="\n".join(["exit codes:", *(f"  {code:<3} {MEANINGS[code]}" for code in ExitCode)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
    _add_config(parser, None)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = _command(argv)
    for name, (module, told) in COMMANDS.items():
        command = commands.add_parser(name, help=told, allow_abbrev=False)
        if chosen in (name, COMPLETION):
            import_module(f"streaming.commands.{module}").add_arguments(command)
            _add_config(command, argparse.SUPPRESS)  # else it hides the one before the command
    if chosen == COMPLETION:
        parser.set_defaults(whole=parser)
    return parser.parse_args(argv)


def _add_config(parser: argparse.ArgumentParser, default: str | None) -> None:
    told = "settings (TOML); else that of RECONCILE_CONFIG, or /etc/reconciler/reconcile.toml"
    added = parser.add_argument("--config", type=Path, default=default, metavar="FILE", help=told)
    vars(added)["complete"] = FILES


def _command(argv: Sequence[str]) -> str | None:
    """The command that is chosen; `None` if there is none."""
    words = iter(argv)
    for word in words:
        if word in COMMANDS:
            return word
        if word == "--config":
            next(words, None)
    return None


if __name__ == "__main__":
    sys.exit(main())
