"""The version of this product."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

PACKAGE = "james-reconciler"


def version() -> str:
    """The version of the installed package, or of the sources if none is installed."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parents[2] / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
