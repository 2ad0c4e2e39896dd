"""Names as a person types them: of one that is not known it is said which is near."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Reads one of these names. What it makes raises `argparse.ArgumentTypeError`."""
    known = list(names)

    def read(text: str) -> str:
        if text in known:
            return text
        hint = did_you_mean(text, known) or f": one of {', '.join(known)}"
        raise argparse.ArgumentTypeError(f"{text!r} is not known{hint}")

    return read


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """To be added to what is said of an unknown name; empty where none is near."""
    near = difflib.get_close_matches(text, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
