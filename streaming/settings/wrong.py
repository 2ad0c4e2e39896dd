"""Each setting that is wrong, in one line: its place, what it is, and what it must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from reconcilers.words.names import did_you_mean
from streaming.settings.given import Given, every_setting, field_of, variable_of
from streaming.settings.kinds import choices, kind, written
from streaming.settings.model import Settings
from streaming.settings.section import PREFIX

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LONGEST = 60
"""Characters of a value that are shown."""


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable that was meant to be a setting and is none."""
    known = [variable_of(section, setting) for section, setting, _ in every_setting()]
    one_line = {each.replace("__", "_", 1): each for each in known}
    for name in sorted(environment):
        if name in one_line:
            yield f"{name} is no setting: did you mean {one_line[name]}?"
        elif name.startswith(f"{PREFIX}SPARK__"):
            yield f"{name} is no setting: options of [spark] stand in the file only"
        elif name.startswith(PREFIX) and "__" in name and name not in known:
            yield f"{name} is no setting{did_you_mean(name, known)}"


def described(error: ErrorDetails, given: Given) -> str:
    """What is wrong with a setting of a file or the environment. Secrets are not shown."""
    place = tuple(map(str, error["loc"]))
    own = error.get("ctx", {}).get("error")  # of our own checks
    match place:
        case ():
            return str(own or error["msg"])
        case (section,):
            return f"{given.path}: [{section}] {_of_section(section, error['type'], own)}"
        case section, setting, *_ if error["type"] == "extra_forbidden":
            known = [name for each, name, _ in every_setting() if each == section]
            return f"{given.place(section, setting)} is no setting{did_you_mean(setting, known)}"
        case section, setting, *_:
            return given.place(section, setting) + _of_value(section, setting, own, given)
    raise AssertionError(place)


def _of_section(section: str, error: str, own: object) -> str:
    if error == "extra_forbidden":
        return f"is no section{did_you_mean(section, Settings.model_fields)}"
    return str(own) if own is not None else "must be a table of settings"


def _of_value(section: str, setting: str, own: object, given: Given) -> str:
    if own is not None:
        return f": {own}"
    told, value = field_of(section, setting), given.values[section][setting]
    shown = written(value) if told.repr else "not what it must be"
    hint = did_you_mean(str(value), choices(told))
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}…"
    return f" is {shown}, and must be: {kind(told)}{hint}"
