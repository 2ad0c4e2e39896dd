"""Shifts of clocks: which files they write, and what reads them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.embedded.layout import Layout
from deploy.nemesis import tools
from deploy.nemesis.agreement import skew_us
from deploy.nemesis.clocks import by_clock, clock_of, shifts
from deploy.nemesis.schedule import FaultChoice, InjectedFault


@pytest.fixture
def stack(tmp_path: Path) -> Any:
    places = [SimpleNamespace(host=f"127.0.0.{n}", number=n) for n in (1, 2, 3)]
    nodes = [SimpleNamespace(place=place) for place in places]
    return SimpleNamespace(layout=Layout(tmp_path), nodes=nodes)


def shown(stack: Any) -> list[str]:
    return [clock_of(stack, number).read_text() for number in (1, 2, 3)]


def test_a_nodes_clock_is_shifted_alone_and_the_streams_by_all_others(stack: Any) -> None:
    found = dict(shifts(stack, 2))
    stream = found[FaultChoice(InjectedFault.STREAM_CLOCK, "the stream, 2 s ahead", "cluster")]
    node = found[FaultChoice(InjectedFault.NODE_CLOCK, "127.0.0.2, 2 s ahead", "cluster")]
    stream.inject()
    assert shown(stack) == ["-2\n"] * 3
    stream.heal()
    assert shown(stack) == ["+0\n"] * 3
    node.inject()
    assert shown(stack) == ["+0\n", "+2\n", "+0\n"]
    node.heal()
    assert shown(stack) == ["+0\n"] * 3
    assert len(found) == 8


def test_the_checker_allows_for_the_clocks_that_were_shifted() -> None:
    for each in (InjectedFault.NODE_CLOCK, InjectedFault.STREAM_CLOCK):
        assert skew_us({each: 1}, 3) == skew_us({}, 3) + 3_000_000
    assert skew_us({InjectedFault.KILL_NODE: 1, InjectedFault.NODE_CLOCK: 0}, 2) == skew_us({}, 2)


def test_what_reads_a_clock_keeps_its_timed_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "faketime", lambda: Path("/lib/faketime.so"))
    assert by_clock(tmp_path / "clock") == (
        "env",
        "LD_PRELOAD=/lib/faketime.so",
        f"FAKETIME_TIMESTAMP_FILE={tmp_path}/clock",
        "FAKETIME_CACHE_DURATION=1",
        "FAKETIME_FORCE_MONOTONIC_FIX=0",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
    )
