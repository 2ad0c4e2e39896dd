"""The clock of a running process is shifted and set back by real libfaketime."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from deploy.embedded.errors import MissingToolError
from deploy.embedded.wait import until
from deploy.nemesis import tools
from deploy.nemesis.clocks import by_clock, set_clocks

pytestmark = [pytest.mark.stack, pytest.mark.long(part="nemesis")]

TELLS = "import sys, time\nfor _ in sys.stdin: print(time.time(), flush=True)"


def test_a_process_that_runs_sees_its_clock_shifted_and_set_back(tmp_path: Path) -> None:
    try:
        tools.fetch()
    except MissingToolError as error:
        pytest.skip(str(error))
    clock = tmp_path / "clock"
    set_clocks([clock], 0)
    told = subprocess.Popen(
        [*by_clock(clock), sys.executable, "-c", TELLS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    asked, answered = told.stdin, told.stdout
    assert asked is not None
    assert answered is not None

    def is_shifted_by(wanted_s: int) -> bool:
        before = time.time()
        asked.write("now\n")
        return abs(float(answered.readline()) - (before + time.time()) / 2 - wanted_s) < 0.5

    with told:
        for wanted_s in (0, 2, 0, -2, 0):
            set_clocks([clock], wanted_s)
            until(partial(is_shifted_by, wanted_s), 60, "the clock is shifted")
        told.kill()
