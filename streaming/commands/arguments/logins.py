"""A login for one call: a name, and a file that holds its password."""

from __future__ import annotations

from pathlib import Path

from reconcilers.words.errors import Misconfigured
from streaming.settings import CassandraSettings


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
    try:
        password = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as unreadable:
        raise Misconfigured(f"cannot read the password in {file}: {unreadable}") from unreadable
    return settings.model_copy(update={"username": name, "password": password})
