"""Reads names; an unknown one is answered with the nearest known one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from reconcilers.words.names import did_you_mean


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A reader of these names, which raises `argparse.ArgumentTypeError`."""
    known = list(names)

    def read(text: str) -> str:
        if text in known:
            return text
        hint = did_you_mean(text, known) or f": one of {', '.join(known)}"
        raise argparse.ArgumentTypeError(f"{text!r} is not known{hint}")

    return read
