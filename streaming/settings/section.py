"""The types of setting values, and the base class of each part of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

PREFIX = "RECONCILE_"
"""What each name of ours in the environment begins with."""
SECONDS = "seconds"
"""Marks a duration's unit, for docs/settings.md."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), SECONDS]
MaybeSeconds = Annotated[float | None, Field(gt=0, allow_inf_nan=False), SECONDS]
KEYSPACE_NAME = "name of a keyspace"
"""Marks such a text, for docs/settings.md."""
KeyspaceName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_]{1,48}$"), KEYSPACE_NAME]
Fraction = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """A frozen part of the settings that refuses unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid")
