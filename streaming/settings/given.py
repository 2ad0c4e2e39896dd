"""What a settings file and the environment set, and where each value stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from streaming.settings.model import Settings
from streaming.settings.section import PREFIX, Section


class Given:
    """The values of a file and, over them, of the environment."""

    def __init__(
        self, path: Path | None, file: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        self.path = path
        self.variables = {
            (section, setting): variable_of(section, setting)
            for section, setting, _ in every_setting()
            if variable_of(section, setting) in environment
        }
        self.values: dict[str, Any] = dict(file)
        for (section, setting), variable in self.variables.items():
            table = self.values.get(section, {})
            if isinstance(table, Mapping):  # else the file is refused
                value = _of_text(environment[variable], field_of(section, setting))
                self.values[section] = {**table, setting: value}

    def source(self, section: str, setting: str) -> tuple[str, str]:
        """Whether a value is of the ``environment``, the ``file`` or a ``default``, and its place.

        The place is the variable, or the file; a default has none.
        """
        if (section, setting) in self.variables:
            return "environment", self.variables[section, setting]
        if setting in self.values.get(section, {}):
            return "file", str(self.path)
        return "default", ""

    def place(self, section: str, setting: str) -> str:
        """Where a value stands: a variable, or a file, its section and the setting."""
        variable = self.variables.get((section, setting))
        return variable or f"{self.path}: [{section}] {setting}"


def variable_of(section: str, setting: str) -> str:
    """The name of a setting in the environment."""
    return f"{PREFIX}{section}__{setting}".upper()


def every_setting() -> Iterator[tuple[str, str, FieldInfo]]:
    """Each setting with its section and declaration, but for ``[spark]``, which has any."""
    for section, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for setting, told in field.annotation.model_fields.items():
                yield section, setting, told


def field_of(section: str, setting: str) -> FieldInfo:
    """The declaration of a setting. Raises `KeyError` if there is none."""
    kind = Settings.model_fields[section].annotation
    assert isinstance(kind, type)
    assert issubclass(kind, Section)
    return kind.model_fields[setting]


def _of_text(text: str, told: FieldInfo) -> object:
    """The value of a variable: a setting of several values is comma-separated."""
    if not isinstance(told.default, tuple):
        return text
    return tuple(each.strip() for each in text.split(",") if each.strip())
