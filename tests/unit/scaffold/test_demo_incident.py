"""The demo's incident: which segments it deletes."""

from pathlib import Path

from deploy.demo.incident import delete_finished


def test_segments_that_are_still_written_stay(tmp_path: Path) -> None:
    for number, state in ((1, "4194304\nCOMPLETED"), (2, "812\nCOMPLETED"), (3, "65536")):
        (tmp_path / f"CommitLog-8-{number}.log").write_bytes(b"mutations")
        (tmp_path / f"CommitLog-8-{number}_cdc.idx").write_text(state, encoding="utf-8")
    (tmp_path / "CommitLog-8-4.log").write_bytes(b"just begun")
    assert delete_finished(tmp_path) == 2
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == ["CommitLog-8-3.log", "CommitLog-8-3_cdc.idx", "CommitLog-8-4.log"]
