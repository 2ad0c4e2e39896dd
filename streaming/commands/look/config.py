"""``reconcile config``: shows the settings, checks them, or prints an example of a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from checkpoints.codec import Json
from streaming.commands.arguments.output import add_format, formatted
from streaming.settings import (
    SECRET,
    Mode,
    Settings,
    example,
    load,
    refuse_unfit_cluster,
    refuse_unsafe,
)
from streaming.settings.given import Given, every_setting
from streaming.settings.kinds import written
from streaming.settings.read import given_by

SHOW, CHECK, EXAMPLE = "show", "check", "example"
COLUMNS = ("setting", "value", "source", "place")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile config show | check | example``."""
    told = (
        "show: each setting, its value and its source; check: whether a stream takes the settings;"
        " example: a settings file with all defaults"
    )
    parser.add_argument("what", choices=(SHOW, CHECK, EXAMPLE), metavar="WHAT", help=told)
    parser.add_argument(
        "--mode",
        choices=[each.value for each in Mode],
        default=Mode.OBSERVE.value,
        help="for check: of a stream in this mode (observe)",
    )
    add_format(parser)
    parser.set_defaults(run=run, load=_load)


def _load(arguments: argparse.Namespace) -> Settings:
    """The settings; the defaults for an example, which helps to mend a file that is wrong."""
    return Settings() if arguments.what == EXAMPLE else load(arguments.config)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print; returns 0. Raises `WrongSettings`, or `Misconfigured`, if check finds a mistake."""
    match arguments.what:
        case "show":
            found = rows(settings, given_by(arguments.config))
            print("\n".join(formatted(arguments.format, found, COLUMNS)))
        case "check":
            refuse_unsafe(settings, Mode(arguments.mode))
            refuse_unfit_cluster(settings)
            print(f"{arguments.config or 'no file, the environment'}: nothing is wrong")
        case _:
            print("\n".join(example()))
    return 0


def rows(settings: Settings, given: Given) -> Iterator[Json]:
    """Each setting with its value, its source, and the file or variable that it comes from.

    Of a secret, the value is only whether it is set.
    """
    for section, setting, told in every_setting():
        value = getattr(getattr(settings, section), setting)
        source, place = given.source(section, setting)
        shown = written(value) if told.repr or value is None else "set, not shown"
        yield _row(f"{section}.{setting}", shown, source, place)
    for name, value in settings.spark:
        shown = "set, not shown" if SECRET.search(name) else written(value)
        yield _row(f"spark: {name}", shown, "file", given.path)


def _row(setting: str, value: str, source: str, place: Any) -> Json:
    return {"setting": setting, "value": value, "source": source, "place": str(place or "")}
