"""What a checkpoint was made with: another set-up must not go on from it.

Spark would take a checkpoint of other topics or another number of partitions and fail late, or
worse, go on. The fingerprint stands beside Spark's files as `FILE`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from reconcilers.errors import IncompatibleCheckpoint

FILE = "reconciler-fingerprint.json"
SCHEMA_VERSION = 2
"""Raised when the stateful part of the query changes its columns."""
WAY_OUT = "start with --fresh-checkpoint: it begins at the bookmark, and nothing is lost"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is frozen in a checkpoint."""

    topics: tuple[str, ...]
    families: tuple[str, ...]
    shuffle_partitions: int
    kafka_prefix: str
    schema_version: int = SCHEMA_VERSION


def check(directory: Path, fingerprint: Fingerprint) -> None:
    """Accept a checkpoint of this set-up, and a directory that is empty or not there yet.

    Raises `IncompatibleCheckpoint` naming what differs and the way out.
    """
    file = directory / FILE
    if not file.exists():
        if directory.exists() and any(directory.iterdir()):
            raise IncompatibleCheckpoint(
                f"{directory} is not empty and has no {FILE}: not a checkpoint of ours, or its"
                f" beginning is lost; name another directory, or {WAY_OUT}"
            )
        return
    differences = list(_differences(_read(file), fingerprint))
    if differences:
        raise IncompatibleCheckpoint(
            f"the checkpoint in {directory} was made with other settings:"
            f" {'; '.join(differences)}. Restore them, or {WAY_OUT}"
        )


def write(directory: Path, fingerprint: Fingerprint) -> None:
    """Write the fingerprint, whole or not at all; makes the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    unfinished = directory / f"{FILE}.unfinished"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(asdict(fingerprint), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(directory / FILE)


def _read(file: Path) -> dict[str, object]:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IncompatibleCheckpoint(f"{file} cannot be read ({error}); {WAY_OUT}") from error
    if not isinstance(stored, dict):
        raise IncompatibleCheckpoint(f"{file} is not a fingerprint; {WAY_OUT}")
    return stored


def _differences(stored: dict[str, object], fingerprint: Fingerprint) -> Iterator[str]:
    for field in fields(fingerprint):
        theirs, ours = stored.get(field.name), getattr(fingerprint, field.name)
        if isinstance(ours, tuple):
            theirs, ours = _listed(theirs), _listed(ours)
        if theirs != ours:
            yield f"{field.name.replace('_', ' ')} {theirs}, now {ours}"


def _listed(names: object) -> str:
    """In one order: that of the settings does not matter."""
    return ", ".join(sorted(map(str, names))) if isinstance(names, list | tuple) else str(names)
