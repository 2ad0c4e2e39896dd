"""`reconcile pause` and `reconcile resume`: what they keep, and what they refuse."""

from __future__ import annotations

import getpass
from types import SimpleNamespace

import pytest

from reconcilers.limits.breakers import Breaker
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


@pytest.mark.parametrize(("what", "open_then"), [([], set()), ([REMOVALS], {Breaker.REPAIRS})])
def test_resume_closes_the_breakers_unless_it_is_of_one_thing(
    pauses: MemoryPauses, journal: MemoryJournal, what: list[str], open_then: set[Breaker]
) -> None:
    app.main(["pause", *what])
    assert app.main(["resume", *what]) == 0
    assert pauses.standing() == ()
    assert set(journal.breakers()) == open_then
