"""The demo's end: its report, and what `--keep` leaves running."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.demo import __main__ as demo
from deploy.demo.pace import Pace
from deploy.demo.play import REPORT, write_report
from deploy.demo.stream import Stream
from deploy.embedded.settings_file import as_toml

URL = "http://127.0.0.1:40861/"


class Acts:
    """Stands for the servers, the stream and the play; notes what ends."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def servers(self, *_: object) -> Any:
        down = SimpleNamespace(up=lambda: None, down=lambda: self.ended.append("servers"))
        return SimpleNamespace(**vars(down), config=Path("stack.toml"))

    def stream(self, *_: object) -> Any:
        return SimpleNamespace(page=URL, pid=4711, end=lambda: self.ended.append("reconciler"))

    def play(self, *_: object) -> Any:
        def run(_stack: Any, stream: Any, ending: ExitStack) -> None:
            ending.callback(stream.end)

        return SimpleNamespace(run=run)


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Acts]:
    acts = Acts()
    before = {number: signal.getsignal(number) for number in demo.INTERRUPTS}
    for name, stands in {"Stack": acts.servers, "Stream": acts.stream, "Play": acts.play}.items():
        monkeypatch.setattr(demo, name, stands)
    monkeypatch.setattr(demo, "judged", lambda _: SimpleNamespace(fine=True))
    monkeypatch.setattr(demo, "summary", lambda *_: ["OK: all is as it should be"])
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: str(tmp_path))
    yield acts
    for number, handler in before.items():
        signal.signal(number, handler)


def test_it_ends_with_the_verdict_and_the_report_and_nothing_runs_on(
    acts: Acts, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert demo.main([]) == demo.FINE
    assert acts.ended == ["reconciler", "servers"]
    told = capsys.readouterr().out.splitlines()
    assert told[-3:] == ["OK: all is as it should be", "", f"the report: {REPORT}"]
    assert REPORT.parts[-2:] == ("build", "report.html")
    assert not tmp_path.exists()


def test_what_is_kept_runs_on_with_its_page_and_it_says_how_to_end_it(
    acts: Acts, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert demo.main(["--keep"]) == demo.FINE
    assert acts.ended == []
    told = capsys.readouterr().out.splitlines()
    after = told[told.index(f"the report: {REPORT}") + 1 :]
    assert after[0] == f"the page: {URL}"
    assert after[-2:] == [
        "  kill 4711",
        f"  {sys.executable} -m deploy.embedded down --data-dir {tmp_path}/stack",
    ]
    assert tmp_path.exists()


def test_a_spark_cluster_ends_with_its_stream_so_it_cannot_be_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        demo.main(["--keep", "--spark-cluster"])
    assert "not allowed with argument" in capsys.readouterr().err


def test_the_page_is_where_the_stream_says_that_its_metrics_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = tmp_path / "stack.toml"
    stack.write_text(as_toml({"cassandra": {"port": 9999}}), encoding="utf-8")
    stream = Stream(stack, tmp_path, Pace(), {})
    assert stream.pid is None
    stream.log.write_text("watching x in repair mode; metrics on port 40861", encoding="utf-8")
    monkeypatch.setattr("deploy.demo.stream.look", lambda _port: None)
    stream.sight()
    assert stream.page == URL


def test_the_report_is_that_of_the_command(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []
    stream: Any = SimpleNamespace(command=lambda *words: asked.append(words))
    file = tmp_path / "build" / "report.html"
    write_report(stream, file)
    assert asked == [("report", "--html", str(file))]
    assert file.parent.is_dir()
