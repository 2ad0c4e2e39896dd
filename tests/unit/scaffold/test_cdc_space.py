"""The script that measures cdc_raw on a node, for node_exporter."""

from __future__ import annotations

import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "agent" / "cdc_space.sh"


def run(raw: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """The script, for a node with a cdc_total_space of 64 MiB."""
    command = [str(SCRIPT), str(raw), "64", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_writes_the_bytes_of_all_segments_and_the_limit(tmp_path: Path) -> None:
    raw, file = tmp_path / "cdc raw", tmp_path / "cdc_raw.prom"
    (raw / "a folder").mkdir(parents=True)
    for name, size in (("CommitLog-7-1.log", 3_000_000_000), ("CommitLog-7-1_cdc.idx", 9)):
        with (raw / name).open("wb") as segment:
            segment.truncate(size)
    done = run(raw, file)
    assert (done.returncode, done.stderr) == (0, "")
    families = text_string_to_metric_families(file.read_text("utf-8"))
    found = {sample.name: sample.value for family in families for sample in family.samples}
    assert found == {
        "reconciler_cdc_raw_bytes": 3_000_000_009,
        "reconciler_cdc_raw_limit_bytes": 64 * 2**20,
    }
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["cdc_raw.prom"]
    assert file.stat().st_mode & 0o044 == 0o044  # node_exporter is another user


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    raw, file = tmp_path / "cdc_raw", tmp_path / "cdc_raw.prom"
    raw.mkdir()
    assert run(raw, file).returncode == 0
    assert "reconciler_cdc_raw_bytes 0\n" in file.read_text("utf-8")


def test_without_the_folder_the_last_numbers_stay_and_it_fails(tmp_path: Path) -> None:
    file = tmp_path / "cdc_raw.prom"
    file.write_text("reconciler_cdc_raw_bytes 5\n", encoding="utf-8")
    done = run(tmp_path / "cdc_raw", file)
    assert done.returncode != 0
    assert "cdc_raw" in done.stderr
    assert file.read_text("utf-8") == "reconciler_cdc_raw_bytes 5\n"
    assert [each.name for each in tmp_path.iterdir()] == ["cdc_raw.prom"]
