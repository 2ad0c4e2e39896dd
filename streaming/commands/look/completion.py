"""``reconcile completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

import shtab

from streaming.settings import Settings

SHELLS = ("bash", "zsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile completion bash | zsh``; ``whole`` is the parser of all commands."""
    told = "bash: as /etc/bash_completion.d/reconcile; zsh: as _reconcile in a folder of fpath"
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=told)
    parser.set_defaults(run=run, load=lambda _: Settings())


def run(_: Settings, arguments: argparse.Namespace) -> int:
    """Print the script; returns 0. It needs no settings."""
    print(shtab.complete(arguments.whole, shell=arguments.shell))
    return 0
