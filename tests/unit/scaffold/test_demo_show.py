"""The live view: what it shows, on a terminal and elsewhere."""

import io

import pytest

from deploy.demo.show import Plain, Scene, Stopwatch, Terminal, block, line, screen_for
from deploy.demo.sight import Sight

SCENE = Scene(
    doing="users at work",
    statements=400,
    faults=60,
    sight=Sight(
        findings={
            ("messages", "missing_row", "intended"): 5,
            ("messages", "missing_row", "verified"): 3,
            ("unseen_uids", "missing_row", "intended"): 1,
            ("messages", "duplicate_uid", "reported"): 1,
        },
        standing={
            ("messages", "missing_row", "intended"): 2,
            ("unseen_uids", "missing_row", "intended"): 1,
            ("messages", "duplicate_uid", "reported"): 1,
        },
        lag={"events": 7},
        breakers=("repairs",),
        capture_delay=0.66,
        examined=250,
    ),
)


def clock_at(*times: float) -> Stopwatch:
    told = iter((0.0, *times))
    return Stopwatch(lambda: next(told))


def test_the_block_counts_by_projection_and_kind() -> None:
    shown = block(SCENE)
    missing = [text.split() for text in shown if "missing_row" in text]
    assert missing == [
        ["messages", "missing_row", "5", "5", "3", "2"],
        ["unseen_uids", "missing_row", "1", "1", "0", "1"],
    ]
    assert "250 rows examined, 7 records behind, capture delay 0.7 s" in shown[2]
    assert "400 statements to projections, 60 faults" in shown[1]
    assert shown[-2:] == [
        "  reported, left as they are: duplicate_uid 1",
        "  breaker repairs is OPEN: repairs pause",
    ]


def test_the_line_says_the_same() -> None:
    assert line(SCENE) == (
        "users at work; 60 faults; found/repaired/verified: messages missing_row 5/5/3,"
        " unseen_uids missing_row 1/1/0; reported: duplicate_uid 1; 7 records behind, capture"
        " delay 0.7 s, batch 0.0 s; breaker repairs is OPEN"
    )
    assert "nothing yet" in line(Scene("x", 0, 0, Sight()))


def test_a_file_gets_a_line_every_five_seconds() -> None:
    out = io.StringIO()
    # Each line asks the time thrice: is it time, since when, and to show it.
    plain = Plain(out, clock_at(1, 1, 1, 3, 5.9, 6, 6, 6))
    for _ in range(4):
        plain.show(SCENE)
    assert [text[:7] for text in out.getvalue().splitlines()] == ["[0:01] ", "[0:06] "]


def test_a_terminal_is_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = io.StringIO()
    terminal = Terminal(out, clock_at(61, 62, 63))
    terminal.show(SCENE)
    lines = len(block(SCENE))
    assert out.getvalue().count("\n") == lines
    assert max(len(text) for text in out.getvalue().splitlines()[1:]) == 29
    out.truncate(out.seek(0))
    terminal.show(SCENE)
    assert out.getvalue().startswith(f"\r\x1b[{lines}A\x1b[J[1:02] users at work")
    out.truncate(out.seek(0))
    terminal.say("done")
    assert out.getvalue() == f"\r\x1b[{lines}A\x1b[J[1:03] done\n"


def test_what_does_not_fit_on_the_terminal_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "4")
    out = io.StringIO()
    Terminal(out, clock_at(61)).show(SCENE)
    assert out.getvalue().count("\n") == 3


def test_the_screen_fits_the_stream() -> None:
    assert isinstance(screen_for(io.StringIO()), Plain)
