"""`reconcile pause` and `reconcile resume`: what they keep, and what they refuse."""

from __future__ import annotations

import getpass
from types import SimpleNamespace

import pytest

from reconcilers.limits.breakers import OF_ROWS, Breaker
from reconcilers.limits.write_target import ALL, REMOVALS
from streaming import app
from streaming.commands.arguments import people
from streaming.commands.person import pause as command
from streaming.commands.person import resume
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.pauses import MemoryPauses

IN_AN_HOUR = "2027-01-15T09:00:00"


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> MemoryJournal:
    kept = MemoryJournal()
    kept.open_breaker(Breaker.REPAIRS, "2000 in a minute", NOW)
    monkeypatch.setattr(resume, "open_own", lambda settings: SimpleNamespace(journal=kept))
    return kept


@pytest.fixture
def pauses(journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> MemoryPauses:
    kept = MemoryPauses()
    monkeypatch.setattr(command, "pauses_of", lambda settings: kept)
    monkeypatch.setattr(resume, "pauses_of", lambda settings: kept)
    monkeypatch.setattr(people, "now_micros", lambda: NOW)
    return kept


@pytest.mark.parametrize(
    ("words", "lasts"),
    [
        ((), None),
        (("--for", "90s"), 90),
        (("--for", "3m"), 180),
        (("--for", "1d"), 86_400),
        (("--until", IN_AN_HOUR), 3_600),
        (("--until", f"{IN_AN_HOUR}+00:30"), 1_800),
    ],
)
def test_a_pause_is_kept_with_its_end(
    pauses: MemoryPauses, words: tuple[str, ...], lasts: int | None
) -> None:
    assert app.main(["pause", *words]) == 0
    (kept,) = pauses.standing()
    assert (kept.what, kept.asked_at, kept.who) == (ALL, NOW, getpass.getuser())
    assert kept.until == (None if lasts is None else NOW + lasts * SECOND)


def test_it_is_kept_who_asked_for_it_and_why(pauses: MemoryPauses) -> None:
    assert app.main(["pause", REMOVALS, "--who", "alice", "--reason", "a look"]) == 0
    (kept,) = pauses.standing()
    assert (kept.what, kept.who, kept.reason) == (REMOVALS, "alice", "a look")


@pytest.mark.parametrize("until", ["2027-01-15T07:59:59", "2027-01-15T08:00:00"])
def test_a_time_that_is_over_pauses_nothing(pauses: MemoryPauses, until: str) -> None:
    assert app.main(["pause", "--until", until]) == 2
    assert pauses.standing() == ()


def resume_with(*words: str, who: str = "alice") -> int:
    return app.main(["resume", *words, "--who", who])


@pytest.fixture
def paused(pauses: MemoryPauses, journal: MemoryJournal) -> MemoryPauses:
    """Alice has paused all and removals; two breakers are open."""
    journal.open_breaker(Breaker.REMOVALS, "200 in a minute", NOW)
    for what in (ALL, REMOVALS):
        app.main(["pause", what, "--who", "alice"])
    return pauses


@pytest.mark.parametrize(
    ("words", "paused_then", "open_then"),
    [
        ((), set(), set()),
        (("--pause", REMOVALS), {ALL}, OF_ROWS),
        (("--pause", REMOVALS, "--pause", ALL), set(), OF_ROWS),
        (("--breaker", "repairs"), {ALL, REMOVALS}, {Breaker.REMOVALS}),
        (("--breaker", "removals", "--pause", ALL), {REMOVALS}, {Breaker.REPAIRS}),
        (("--dry-run",), {ALL, REMOVALS}, OF_ROWS),
    ],
    ids=str,
)
def test_resume_ends_what_is_named(
    paused: MemoryPauses,
    journal: MemoryJournal,
    words: tuple[str, ...],
    paused_then: set[str],
    open_then: set[Breaker],
) -> None:
    assert resume_with(*words) == 0
    assert {each.what for each in paused.standing()} == paused_then
    assert set(journal.breakers()) == open_then


def test_resume_says_what_it_ends(paused: MemoryPauses, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    resume_with("--dry-run")
    assert capsys.readouterr().out.splitlines() == [
        "pause of all, paused by alice: no reason given",
        "pause of removals, paused by alice: no reason given",
        "breaker removals, open: 200 in a minute",
        "breaker repairs, open: 2000 in a minute",
        "nothing done",
    ]


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 2), ("", 1, 2), ("y", 0, 0)])
def test_another_persons_pause_is_ended_only_after_a_question(
    paused: MemoryPauses, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    asked: list[str] = []

    def answered(question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", answered)
    assert resume_with(who="bob") == code
    assert len(paused.standing()) == left
    assert asked == ["These are pauses of alice. End them? [y/N] "]


@pytest.mark.parametrize(("words", "code"), [((), 2), (("--yes",), 0), (("--dry-run",), 0)])
def test_without_a_terminal_yes_answers(
    paused: MemoryPauses, words: tuple[str, ...], code: int
) -> None:
    assert resume_with(*words, who="bob") == code
    assert len(paused.standing()) == (0 if "--yes" in words else 2)


def test_a_breaker_that_opens_after_the_list_stays_open(
    paused: MemoryPauses, journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person has not seen it."""

    def opens(_question: str) -> bool:
        journal.open_breaker(Breaker.REPAIRS, "5000 in a minute", NOW + SECOND)
        return True

    monkeypatch.setattr(resume, "is_agreed", opens)
    assert resume_with(who="bob") == 0
    assert journal.breakers() == {Breaker.REPAIRS: "5000 in a minute"}
