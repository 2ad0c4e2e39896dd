"""One fault-injection run of ten minutes on three nodes; docs/nemesis.md has the longer ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded.errors import MissingToolError
from deploy.embedded.jars import ROOT
from deploy.embedded.spec import CassandraRelease
from deploy.nemesis import tools
from deploy.nemesis.record import record_from_json

pytestmark = [pytest.mark.stack, pytest.mark.long(part="nemesis")]

FEWEST_FAULTS = 5
PLAN = ("--seed", "11", "--minutes", "10", "--rate", "10")


def test_users_lose_nothing_and_all_tables_agree(release: CassandraRelease, tmp_path: Path) -> None:
    try:
        tools.fetch()
    except MissingToolError as error:
        pytest.skip(str(error))
    records = tmp_path / "records"
    command = [sys.executable, "-m", "deploy.nemesis", *PLAN, "--release", release]
    done = subprocess.run([*command, "--records", str(records)], cwd=ROOT, check=False)
    assert done.returncode == 0
    [file] = records.iterdir()
    record = record_from_json(file.read_text("utf-8"))
    assert record.passed
    assert record.operations > 0
    assert sum(record.faults.values()) >= FEWEST_FAULTS
