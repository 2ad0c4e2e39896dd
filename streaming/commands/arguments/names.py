"""Reads names; an unknown one is answered with the nearest known one."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A reader of these names, which raises `argparse.ArgumentTypeError`."""
    known = list(names)

    def read(text: str) -> str:
        if text in known:
            return text
        hint = did_you_mean(text, known) or f": one of {', '.join(known)}"
        raise argparse.ArgumentTypeError(f"{text!r} is not known{hint}")

    return read


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """The end of an error message for an unknown name; empty if no name is near."""
    near = difflib.get_close_matches(text, list(known), 1)
    return f": did you mean {near[0]}?" if near else ""
