"""A test that holds the servers until its run is ended.

It is not collected with the others; test_ended_runs.py runs it by the name of this file.
"""

import signal

import pytest

from tests.endpoints import Endpoints


def test_holds_the_servers(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> None:
    (tmp_path_factory.getbasetemp() / "up").touch()
    signal.pause()
