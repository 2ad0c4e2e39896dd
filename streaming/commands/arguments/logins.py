"""A login for one call: a name, and a file that holds its password."""

from __future__ import annotations

from pathlib import Path

from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings, secret_in


def login_of(
    settings: CassandraSettings, name: str | None, file: Path | None, options: str
) -> CassandraSettings | None:
    """The settings with this login; None if none was given.

    ``options`` names both in a message. Raises `Misconfigured` if one is missing, or the file
    cannot be read.
    """
    if name is None and file is None:
        return None
    if name is None or file is None:
        raise Misconfigured(f"{options} belong together")
    password = secret_in(file, options)
    return settings.model_copy(
        update={"username": name, "password": password, "password_file": None}
    )
