"""What a sweep remembers of the rows that it compared when it read the truth: of no other row."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.words.tokens import FIRST, LAST, range_of, tokens_of
from streaming.again.fingerprints import (
    BYTES,
    Fingerprints,
    KeptFingerprints,
    _fingerprint,
    are_among,
)

CELLS = st.none() | st.binary(max_size=3)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=20)


def token(partition: RawCell) -> int:
    return int.from_bytes(partition or b"", "big")


def not_among(rows: Sequence[RawRow], known: Fingerprints) -> list[RawRow]:
    return [row for row, there in zip(rows, are_among(rows, known), strict=True) if not there]


@given(ROWS, ROWS)
def test_only_what_was_noted_whole_is_known(noted: list[RawRow], scanned: list[RawRow]) -> None:
    known = np.sort(np.frombuffer(b"".join(map(_fingerprint, noted)), np.uint64))
    assert not_among(scanned, known) == [row for row in scanned if row not in noted]


def test_rows_are_noted_in_the_range_of_their_token(tmp_path: Path) -> None:
    compared = KeptFingerprints(tmp_path, 512)
    rows: list[RawRow] = [(bytes([number]), b"cell", None) for number in range(200)]
    compared.note(rows[:100], token)
    compared.note(rows[100:150], token)
    known = compared.of(range(range_of(1, 512), range_of(1, 512) + 1))
    assert not_among(rows, known) == rows[150:]
    changed: RawRow = (b"\x01", b"another", None)
    assert not_among([changed, (b"\x01", b"cell", b"")], known) == [
        changed,
        (b"\x01", b"cell", b""),
    ]
    assert not_among(rows, compared.of(range(7, 8))) == rows, "nothing is known of another range"


def test_what_a_killed_worker_wrote_in_part_is_unknown_and_nothing_else(tmp_path: Path) -> None:
    compared = KeptFingerprints(tmp_path, 1)
    rows: list[RawRow] = [(b"a",), (b"b",), (b"c",)]
    compared.note(rows, token)
    file = tmp_path / "0"
    file.write_bytes(file.read_bytes()[: 3 * BYTES - 3])
    assert not_among(rows, compared.of(range(1))) == rows[2:]


def test_without_its_folder_everything_is_compared_and_one_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = KeptFingerprints(tmp_path / "gone", 4)
    for _ in range(2):
        gone.note([(b"a",)], token)
        assert not_among([(b"a",)], gone.of(range(4))) == [(b"a",)]
    (line,) = caplog.messages
    assert line.startswith("the sweep takes longer, fingerprints are lost in")


def test_a_range_without_fingerprints_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not len(KeptFingerprints(tmp_path, 4).of(range(4)))
    assert caplog.messages == []


def test_where_it_cannot_write_the_sweep_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "0").mkdir()  # stands for a disk that is full: opening it fails
    compared = KeptFingerprints(tmp_path, 1)
    compared.note([(b"a",)], token)
    assert "takes longer" in caplog.text
    assert not_among([(b"a",)], compared.of(range(1))) == [(b"a",)]
    assert stat.S_ISDIR((tmp_path / "0").stat().st_mode)


@given(st.integers(FIRST, LAST), st.integers(1, 600))
def test_a_token_is_in_its_range(value: int, count: int) -> None:
    number = range_of(value, count)
    tokens = tokens_of(range(number, number + 1), count)
    assert tokens.after < value <= tokens.until or value == FIRST
