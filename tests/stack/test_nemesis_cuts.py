"""Cuts of connections by real iptables, in a network namespace of the test's own."""

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

PROBE = Path(__file__).with_name("cut_probe.py")
OPEN = ["ok", "ok"]
"""What another client sees during a cut, and the cut one after it."""


def test_a_cut_is_felt_by_its_own_client_and_ends(tmp_path: Path) -> None:
    try:
        tools.fetch()
    except MissingToolError as error:
        pytest.skip(str(error))
    command = [*hosts.ENTER, *hosts.THEN, sys.executable, str(PROBE), str(tmp_path)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "connections reset and refused: the stream and 127.0.0.2": ["refused", *OPEN],
        "packets dropped both ways: the stream and 127.0.0.2": ["silence", *OPEN],
        "packets dropped one way: from the stream to 127.0.0.2": ["silence", *OPEN],
        "packets dropped one way: from 127.0.0.2 to the stream": ["silence", *OPEN],
        "30 % of packets lost: the stream and 127.0.0.2": ["ok", *OPEN],
    }
