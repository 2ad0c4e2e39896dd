"""Reads settings files and the environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reconcilers.words.errors import Misconfigured
from streaming.settings.model import Settings
from streaming.settings.section import PREFIX

LISTS = frozenset(
    {
        ("cassandra", "hosts"),
        ("agent", "http"),
        ("repair", "projections"),
        ("attachments", "tables"),
        ("tally", "projections"),
    }
)
"""Settings that are several values: comma-separated in the environment."""


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file and the environment. Raises `Misconfigured` in one clear line."""
    values = _from_file(path) if path is not None else {}
    _overlay(values, environment)
    try:
        return Settings.model_validate(values)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise Misconfigured(f"setting {where}: {first['msg']} (see docs/settings.md)") from wrong


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as unreadable:
        raise Misconfigured(f"cannot read settings {path}: {unreadable.strerror}") from unreadable
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise Misconfigured(f"settings {path} is not TOML: {broken}") from broken


def _overlay(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    """``RECONCILE_<SECTION>__<SETTING>``; lists are comma-separated."""
    for name, text in environment.items():
        section, dots, setting = name.removeprefix(PREFIX).lower().partition("__")
        if not name.startswith(PREFIX) or not dots:
            continue
        several = tuple(each for each in text.split(",") if each)
        value = several if (section, setting) in LISTS else text
        values.setdefault(section, {})[setting] = value
