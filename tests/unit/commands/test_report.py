"""`reconcile report`: what is counted, what is shown, and that no user's text acts in it."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import pytest

from checkpoints.bookmarks import Bookmark
from checkpoints.clock import now_micros
from checkpoints.losses import Loss
from checkpoints.pauses import Resumed
from checkpoints.sweeps import SweepRecord
from reconcilers.declared.families.message import MESSAGE
from reconcilers.limits.breakers import Breaker
from reconcilers.limits.pause import Pause
from reconcilers.limits.write_target import ALL
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import SECOND, Kind, Micros, Row
from reconcilers.words.waiting import Wait, Waiting
from streaming.commands.look import report
from streaming.commands.look.report import Period, ReportSources, report_of
from streaming.commands.look.report_html import as_html, bars
from streaming.commands.look.report_shown import PeriodReport, as_json, as_text
from streaming.settings import Settings
from tests.builders.canaries import reached
from tests.contract.making import SetClock, a_finding, a_slot
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.pauses import MemoryPauses

DAY = 86_400 * SECOND
NOW = 20_000 * DAY + 12 * 3600 * SECOND
EVIL = "<script>alert(1)</script>\x1b]0;owned\x07\u202e\n=cmd|'/c calc'!A0 \" onload='x' &amp;"
OBSERVING = Waiting(Wait.OBSERVING, "it only observes")


@dataclass
class Days:
    """A journal of some days before `NOW`, and all else that the report reads."""

    clock: SetClock
    journal: MemoryJournal
    pauses: MemoryPauses
    losses: tuple[Loss, ...] = ()
    sweeps: tuple[SweepRecord, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()

    def find(self, ago: Micros, state: State, **changes: Any) -> Finding:
        """A finding that came to a state so long ago."""
        self.clock.now = NOW - ago
        found: dict[str, Any] = {"found_at": NOW - ago, "oldest": NOW - ago - 55 * SECOND}
        if state is not State.INTENDED:
            found |= {"writes": (), "attempts": 0}
        finding = a_finding(MESSAGE, a_slot(), state=state, **(found | changes))
        self.journal.put(finding)
        return finding

    def observe(self, ago: Micros, **changes: Any) -> Finding:
        return self.find(ago, State.OBSERVED, waits=OBSERVING, **changes)

    def report(self, since: Micros = 7 * DAY) -> PeriodReport:
        return report_of(
            ReportSources(
                "apache_james", 50.0, self.journal, self.pauses,
                self.losses, self.sweeps, self.bookmarks,
            ),
            Period(NOW - since, NOW),
        )  # fmt: skip


@pytest.fixture
def days() -> Days:
    clock = SetClock(NOW)
    return Days(clock, MemoryJournal(clock), MemoryPauses())


def shown(found: PeriodReport) -> str:
    return "\n".join(as_text(found))


def test_a_week_without_findings(days: Days) -> None:
    text = shown(days.report())
    assert "0 findings" in text
    assert "nothing was found" in text
    assert "Capture\n  not known" in text


def test_what_became_of_the_findings_of_a_week(days: Days) -> None:
    repaired = days.find(2 * DAY, State.INTENDED)
    days.journal.close(repaired, State.VERIFIED, repaired.found_at + 55 * SECOND)
    healed = days.observe(DAY, kind=Kind.MISSING_ROW)
    days.journal.close(healed, State.HEALED, healed.found_at + 59 * SECOND)
    days.observe(DAY, kind=Kind.EXTRA_ROW)
    days.find(3 * DAY, State.REPORTED, kind=Kind.DUPLICATE_UID)
    days.observe(30 * DAY)
    found = days.report()
    assert found.found == 4
    assert [(each.state, each.kind, each.findings) for each in found.states] == [
        ("intended", "differing_cells", 1),
        ("verified", "differing_cells", 1),
        ("reported", "duplicate_uid", 1),
        ("observed", "extra_row", 1),
        ("healed", "missing_row", 1),
        ("observed", "missing_row", 1),
    ]
    minute, ten = found.healed
    assert (minute.healed, minute.not_healed, minute.unknown) == (1, 2, 0)
    assert (ten.healed, ten.not_healed, ten.unknown) == (1, 2, 0)
    assert minute.low < 1 / 3 < minute.high
    (times,) = found.repairs
    assert (times.system, times.repairs, times.p50, times.p99) == ("messages", 1, 55.0, 55.0)
    assert [(each.kind, each.findings) for each in found.not_written] == [
        ("extra_row", 1), ("missing_row", 1),
    ]  # fmt: skip
    assert len(found.days) == 4
    assert len(found.examples) == 4


def test_what_waits_now_names_who_ends_it(days: Days) -> None:
    days.observe(DAY)
    days.find(DAY, State.HELD, waits=Waiting(Wait.BREAKER, "repairs are too many"))
    days.find(DAY, State.REPORTED)
    days.find(40 * DAY, State.STUCK)
    waits = {each.wait: each for each in days.report().waiting}
    assert set(waits) == {"observing", "breaker", "reported", "stuck"}
    assert waits["breaker"].command == "reconcile resume --breaker NAME"
    assert all(each.ends for each in waits.values())
    assert {each.wait for each in days.report().waited} == {"observing", "breaker"}


def test_each_state_of_an_open_finding_names_who_ends_it(days: Days) -> None:
    for state in (State.STUCK, State.REPORTED, State.INTENDED, State.UNDOING):
        days.find(DAY, state)
    assert len(days.report().waiting) == 4


def test_openings_of_breakers_are_shown_also_closed_ones(days: Days) -> None:
    days.journal.open_breaker(Breaker.REPAIRS, "long ago", NOW - 90 * DAY)
    days.journal.close_breakers(NOW - 89 * DAY)
    days.journal.open_breaker(Breaker.REPAIRS, "1001 in a minute", NOW - 2 * DAY)
    days.journal.close_breakers(NOW - DAY)
    days.journal.open_breaker(Breaker.REMOVALS, "before, and open", NOW - 9 * DAY)
    found = days.report().breakers
    assert {each.reason: each.closed is None for each in found} == {
        "1001 in a minute": False,
        "before, and open": True,
    }
    assert "still OPEN" in shown(days.report())


def test_pauses_losses_sweeps_and_capture_of_the_period(days: Days) -> None:
    pause = Pause(ALL, NOW - DAY, "ana", "a look")
    days.pauses.begin(pause)
    days.pauses.end(pause, Resumed(NOW - DAY + SECOND, "bob", "it was nothing"))
    days.pauses.begin(Pause(ALL, NOW - 30 * DAY, "old", "", until=NOW - 29 * DAY))
    days.losses = (Loss(NOW - DAY, "the canary of node 1 is missing"), Loss(NOW - 9 * DAY, "old"))
    days.sweeps = (
        SweepRecord(NOW - DAY, "ana", "", ("messages",), 512, outcome="done", ended_at=NOW - 3),
        SweepRecord(NOW - 30 * DAY, "old", "", ("messages",), 512),
    )
    heard = {("node 1", "t", 0): reached(NOW - 52 * SECOND)}
    days.bookmarks = (Bookmark("message", {}, recorded_at=NOW, heard=heard),)
    found = days.report()
    text = shown(found)
    assert "ended 2024" in text
    assert "by bob: it was nothing" in text
    assert "the canary of node 1 is missing" in text
    assert found.capture == {"node 1": 52.0}
    assert "old" not in "\n".join((*found.pauses, *found.losses, *found.sweeps))


def test_the_report_only_reads(days: Days) -> None:
    days.observe(DAY)
    before = (dict(days.journal._open), list(days.journal._log))
    days.report()
    assert (days.journal._open, days.journal._log) == before


def test_the_report_is_one_json_object(days: Days) -> None:
    days.observe(DAY)
    told = json.loads(json.dumps(as_json(days.report())))
    assert told["found"] == 1
    assert told["examples"][0]["kind"] == "differing_cells"


def test_what_is_above_the_limit_is_told(days: Days) -> None:
    days.observe(DAY)
    found = replace(days.report(), left_out=7)
    assert "7 of 1 lines" in shown(found)
    assert "7 of 1 lines" in as_html(found)


# --- what users have typed ------------------------------------------------------------------------


def an_evil_week(days: Days) -> PeriodReport:
    """Each text that a person or a mail server may have written is an attack."""
    row = Row({"userflags": frozenset({EVIL}), "headercontent": EVIL})
    waits = Waiting(Wait.PAUSE, EVIL)
    days.find(DAY, State.HELD, source=EVIL, sentence=EVIL, truth=(row,), before=row, waits=waits)
    days.journal.open_breaker(Breaker.REPAIRS, EVIL, NOW - DAY)
    days.pauses.begin(Pause(ALL, NOW - DAY, EVIL, EVIL))
    days.losses = (Loss(NOW - DAY, EVIL),)
    days.sweeps = (SweepRecord(NOW - DAY, EVIL, EVIL, ("messages",), 1, outcome=EVIL),)
    heard = {(EVIL, "t", 0): reached(NOW - 52 * SECOND)}
    days.bookmarks = (Bookmark("message", {}, recorded_at=NOW, heard=heard),)
    found = days.report()
    return replace(found, keyspace=EVIL, repairs=())


def test_no_text_of_a_user_acts_on_a_terminal(days: Days) -> None:
    lines = list(as_text(an_evil_week(days)))
    assert sum("owned" in each for each in lines) >= 7
    assert all(each.isprintable() for each in lines)


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))


def test_no_text_of_a_user_is_markup_of_the_page(days: Days) -> None:
    page = as_html(an_evil_week(days))
    tags = Tags()
    tags.feed(page)
    assert page.count("owned") >= 7
    assert {tag for tag, _ in tags.seen} == {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "pre", "svg", "rect", "text",
    }  # fmt: skip
    names = {name for _, attributes in tags.seen for name, _ in attributes}
    assert not [name for name in names if name.startswith("on") or name in {"href", "src"}]
    assert all(each.isprintable() or each == "\n" for each in page)


def test_the_page_needs_nothing_from_elsewhere(days: Days) -> None:
    days.observe(DAY)
    page = as_html(days.report())
    assert "default-src 'none'" in page
    assert not re.findall(r"https?:|@import|url\(", page)


def test_the_plot_of_repairs_names_each_time_itself(days: Days) -> None:
    for ago in (10, 110):
        days.find(DAY, State.INTENDED, oldest=NOW - DAY - ago * SECOND)
    page = as_html(days.report())
    assert "<title>messages p50: seconds 10</title>" in page
    assert "<title>messages p99: seconds 110</title>" in page


def test_a_plot_is_well_formed_and_its_names_are_escaped() -> None:
    drawn = bars({EVIL: {"a": 3, "b": 1}, "2026-11-28": {"a": 2}}, ("a", "b"))
    root = ElementTree.fromstring(drawn)
    rects = [each for each in root.iter("rect") if each.find("title") is not None]
    heights = [float(each.attrib["height"]) for each in rects]
    assert heights == [157.5, 52.5, 105.0, 0.0]
    assert bars({}, ("a",)) == "<p>none</p>\n"


# --- the command ----------------------------------------------------------------------------------


def parsed(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return parser.parse_args(given)


def run(days: Days, *given: str) -> None:
    sources = ReportSources("apache_james", 50.0, days.journal, days.pauses, (), (), ())
    with (
        patch.object(report, "_sources", lambda _: sources),
        patch.object(report, "now_micros", lambda: NOW),
    ):
        assert report.run(Settings(), parsed(*given)) == 0


def test_the_command_prints_text_or_json_and_writes_a_page(
    days: Days, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days.observe(DAY)
    page = tmp_path / "report.html"
    run(days, "--since", "2024-09-28", "--html", str(page))
    assert capsys.readouterr().out.startswith("apache_james, 2024-09-28")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    run(days, "--since", "2024-09-28", "--format", "json")
    assert json.loads(capsys.readouterr().out)["keyspace"] == "apache_james"


def test_a_week_is_the_default() -> None:
    ago = now_micros() - parsed().since
    assert abs(ago - 7 * DAY) < 600 * SECOND


def test_a_file_that_cannot_be_written_is_told_in_one_line(days: Days, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot write"):
        run(days, "--since", "2024-09-28", "--html", str(tmp_path / "nowhere" / "a.html"))


def test_the_fields_of_a_line_that_change_do_not_make_another_finding(days: Days) -> None:
    first = days.observe(DAY)
    changed = replace(
        first, state=State.INTENDED, kind=Kind.MISSING_ROW, sentence="another", attempts=1,
        source="another", oldest=None, before=None, truth=(), next_look=None, batch="x", waits=None,
    )  # fmt: skip
    days.journal.put(changed)
    days.journal.put(replace(changed, found_at=first.found_at + 1))
    assert days.report().found == 2
