"""Finds and reads the settings file and the environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reconcilers.words.errors import Misconfigured, WrongSettings
from streaming.settings.given import Given
from streaming.settings.model import Settings
from streaming.settings.section import PREFIX
from streaming.settings.wrong import described, unknown_variables

CONFIG = f"{PREFIX}CONFIG"
"""The variable that names the settings file."""
USUAL = Path("/etc/reconciler/reconcile.toml")
"""The settings file if none is named."""


def settings_file(
    named: Path | None, environment: Mapping[str, str] = os.environ, usual: Path = USUAL
) -> Path | None:
    """The file of ``--config``, else of the environment, else the usual one if it exists."""
    if named is not None:
        return named
    if environment.get(CONFIG):
        return Path(environment[CONFIG])
    try:
        usual.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return usual  # reading it fails, and says why
    return usual


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file and the environment.

    Raises `Misconfigured` if the file cannot be read, and `WrongSettings` with all that is wrong.
    """
    given = given_by(path, environment)
    wrong = list(unknown_variables(environment))
    settings = Settings()
    try:
        settings = Settings.model_validate(given.values)
    except ValidationError as invalid:  # its text has the values, passwords among them
        wrong += dict.fromkeys(described(each, given) for each in invalid.errors())
    if wrong:
        raise WrongSettings(*wrong)
    return settings


def given_by(path: Path | None, environment: Mapping[str, str] = os.environ) -> Given:
    """What the file and the environment set. Raises `Misconfigured` if the file is not readable."""
    return Given(path, _from_file(path) if path is not None else {}, environment)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as unreadable:
        raise Misconfigured(f"cannot read settings {path}: {unreadable.strerror}") from unreadable
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
        raise Misconfigured(f"settings {path} is not TOML: {broken}") from broken
