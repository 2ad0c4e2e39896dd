"""Small disks on real file systems, in a mount namespace of the test's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded.errors import MissingToolError
from deploy.embedded.jars import ROOT
from deploy.nemesis import hosts, tools

pytestmark = [pytest.mark.stack, pytest.mark.long(part="nemesis")]

PROBE = Path(__file__).with_name("disk_probe.py")


def test_a_full_disk_refuses_writes_until_it_is_freed_and_is_gone_after(tmp_path: Path) -> None:
    try:
        tools.fetch()
    except MissingToolError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [*hosts.ENTER, *hosts.THEN, sys.executable, str(PROBE), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    each = ["written", "ENOSPC", "written"]
    assert json.loads(done.stdout) == {"node": each, "broker": each}
    assert list((tmp_path / "kafka" / "data").iterdir()) == []
