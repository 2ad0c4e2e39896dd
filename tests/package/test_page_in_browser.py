"""The page in a real browser, as Debian's chromium shows it; skipped where there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from wsgiref.simple_server import make_server

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.clock import HOUR
from deploy.embedded.wait import HANG_S
from reconcilers.words.iso import iso
from reconcilers.words.waiting import Wait, Waiting
from streaming.commands.look.status_shown import OpenCount
from streaming.monitoring.endpoint import Endpoint, HttpAnswer
from tests.builders.rows import NOW
from tests.unit.commands.test_page import EVIL, HELD, shown
from tests.unit.commands.test_status import CALM, STREAM

BROWSER = shutil.which("chromium") or ""
pytestmark = pytest.mark.skipif(not BROWSER, reason="there is no chromium")
AT_NIGHT = replace(
    CALM,
    streams=(replace(STREAM, last_settled=iso(NOW + HOUR), lag=(), records=3),),
    findings=(OpenCount("messages", "missing_row", "held", 1),),
    watched_since=iso(NOW - 200 * HOUR),
    sweeps={"message": f"swept {iso(NOW - 20 * HOUR)}: nothing was found"},
    waits={Wait.DECISION.value: 1},
)
"""The status of an ordinary night: one finding waits for a person."""
PNG = b"\x89PNG\r\n\x1a\n"


@contextmanager
def served(text: str) -> Iterator[str]:
    """The address of a server of this page."""
    routes = {"/": lambda: HttpAnswer(text, kind="text/html; charset=utf-8")}
    with make_server("127.0.0.1", 0, Endpoint(CollectorRegistry(), routes)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def browser(folder: Path, *options: str) -> str:
    """What the browser prints: it has a profile of its own, and no network but this host's."""
    own = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    no_network = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    done = subprocess.run(
        [BROWSER, *own, no_network, *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def test_nothing_that_a_user_has_typed_becomes_an_element(tmp_path: Path) -> None:
    evil = replace(HELD, waits=Waiting(Wait.DECISION, EVIL))
    with served(shown(evil, title=EVIL, problems=(EVIL,), unready=(EVIL,))) as address:
        document = browser(tmp_path, "--dump-dom", address)
    assert not re.search("<(script|img|iframe|link)", document)
    assert "&lt;img src=x onerror=alert(1)&gt;" in document
    assert "reconcile findings --accept" in document
    assert 'http-equiv="refresh"' in document


def test_it_can_be_looked_at(tmp_path: Path) -> None:
    """With PICTURE=docs/page.png it makes the picture of the README."""
    picture = Path(os.environ.get("PICTURE", tmp_path / "page.png")).resolve()
    text = shown(HELD, title="reconciler of apache_james", at=iso(NOW + HOUR), status=AT_NIGHT)
    with served(text) as address:
        browser(tmp_path, f"--screenshot={picture}", "--window-size=1000,690", address)
    assert picture.read_bytes().startswith(PNG)
