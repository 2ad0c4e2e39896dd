"""The nearest known name to one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """The end of an error message for an unknown name; empty if no name is near."""
    near = difflib.get_close_matches(text, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
