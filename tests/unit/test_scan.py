"""What a sweep reads on a worker around what a server fails to read, and where it reads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconcilers.errors import ReadFailed
from reconcilers.families.message import MESSAGE
from reconcilers.raw import RawRow
from reconcilers.tokens import TokenRange
from streaming.again.compared import Compared
from streaming.again.scan import Piece, Scanner, SweptPiece

TOKENS = TokenRange(0, 2**54)
MOST = 500
"""Reads; halving a whole range down to each of its tokens would never end."""


@dataclass
class Scans:
    """Of the index of deleted messages, which is empty; ``fails`` says where it cannot be read."""

    fails: Callable[[TokenRange], bool]
    reads: int = 0

    def pages(self, table: str, tokens: TokenRange) -> Iterator[list[RawRow]]:
        self.reads += 1
        assert self.reads < MOST
        if self.fails(tokens):
            raise ReadFailed("too many tombstones")
        yield from ()

    def token(self, row: RawRow) -> int:
        raise AssertionError(row)

    def sweep(self) -> SweptPiece:
        job: Any = SimpleNamespace(
            family=MESSAGE, connections=lambda: SimpleNamespace(glance=object())
        )
        found = SweptPiece(Piece("messagedeleted", 0, TOKENS))
        Scanner(job, self, Compared(Path("none"), 1)).sweep(TOKENS, found)
        return found


@pytest.mark.parametrize("token", [1, 77, 2**53, 2**54 - 1])
def test_around_a_token_that_cannot_be_read_all_others_are(token: int) -> None:
    scans = Scans(lambda tokens: tokens.after < token <= tokens.until)
    assert [tokens for tokens, _ in scans.sweep().unread] == [TokenRange(token - 1, token)]


def test_a_table_that_cannot_be_read_at_all_is_an_outage_and_not_halved() -> None:
    with pytest.raises(ReadFailed):
        Scans(lambda tokens: True).sweep()
