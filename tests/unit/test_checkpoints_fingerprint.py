"""A checkpoint of another set-up is refused, with what differs and the way out."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.fingerprint import FILE, Fingerprint, check, write
from reconcilers.errors import IncompatibleCheckpoint

MINE = Fingerprint(("b", "a"), ("message",), 4, "james")


def test_a_new_directory_is_accepted(tmp_path: Path) -> None:
    check(tmp_path, MINE)
    check(tmp_path / "not" / "there", MINE)


def test_what_was_written_is_accepted_in_any_order_of_topics(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "er", MINE)
    check(tmp_path / "deep" / "er", MINE)
    check(tmp_path / "deep" / "er", replace(MINE, topics=("a", "b")))
    assert [file.name for file in (tmp_path / "deep" / "er").iterdir()] == [FILE]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(MINE, topics=("a", "b", "c")), "topics a, b, now a, b, c"),
        (replace(MINE, families=("message", "rights")), "families message, now message, rights"),
        (replace(MINE, shuffle_partitions=8), "shuffle partitions 4, now 8"),
        (replace(MINE, kafka_prefix="other"), "kafka prefix james, now other"),
        (replace(MINE, schema_version=99), "schema version 2, now 99"),
    ],
)
def test_each_difference_is_named(tmp_path: Path, other: Fingerprint, named: str) -> None:
    write(tmp_path, MINE)
    with pytest.raises(IncompatibleCheckpoint) as refusal:
        check(tmp_path, other)
    assert named in str(refusal.value)
    assert "--fresh-checkpoint" in str(refusal.value)
    assert str(refusal.value).count(", now ") == 1


def test_writing_again_replaces(tmp_path: Path) -> None:
    write(tmp_path, MINE)
    write(tmp_path, replace(MINE, shuffle_partitions=8))
    check(tmp_path, replace(MINE, shuffle_partitions=8))


def test_files_without_a_fingerprint_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(IncompatibleCheckpoint, match="--fresh-checkpoint"):
        check(tmp_path, MINE)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", json.dumps({"topics": 5}), "\udcff"])
def test_a_damaged_fingerprint_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(IncompatibleCheckpoint, match="--fresh-checkpoint"):
        check(tmp_path, MINE)
