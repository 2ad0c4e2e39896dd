"""The page and `/status`: both sides and the command of a finding, and nothing of a user acts."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html import unescape
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Kind, Row, Slot
from reconcilers.words.waiting import RULES, Wait, Waiting
from streaming.commands.look import web
from streaming.commands.look.page import OpenFindingView, PageContent, command_of, page
from streaming.commands.look.web import KEPT_FOR, SHOWN, Kept, newest, pages
from streaming.monitoring.endpoint import UNAVAILABLE, Routes
from streaming.monitoring.health import Health
from streaming.monitoring.metrics import Metrics
from streaming.settings import Settings
from tests.builders.rows import MAILBOX, MESSAGE_ID, NOW, SLOT, truth
from tests.unit.commands.test_status import CALM

EVIL = "<img src=x onerror=alert(1)>\"'&\x1b[31m\u202e"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2"),
    *("p", "a", "pre", "article", "strong", "code"),
}
HELD = Finding(
    "message",
    "messages",
    SLOT,
    str(MESSAGE_ID),
    Kind.MISSING_ROW,
    State.HELD,
    "row is missing",
    found_at=NOW,
    truth=(truth(),),
    waits=Waiting(Wait.DECISION, "a person has to decide"),
)


def shown(*findings: Finding, **more: Any) -> str:
    views = tuple(OpenFindingView(each, MESSAGE) for each in findings)
    content = PageContent("reconciler of mail", CALM, (), (), views, "now")
    return page(replace(content, **more))


def test_each_finding_has_both_sides_and_its_command() -> None:
    text = unescape(shown(HELD))
    assert "row is missing; held: a person has to decide" in text
    assert "truth: {" in text
    assert '"headercontent"' in text
    assert "messages: no row" in text
    assert f"a person ends this: <code>reconcile findings --accept {MAILBOX}/7</code>" in text


@pytest.mark.parametrize("wait", Wait)
def test_the_command_that_ends_each_wait_is_named(wait: Wait) -> None:
    command = command_of(replace(HELD, waits=Waiting(wait, "why")))
    wanted = RULES[wait].command or "reconcile explain KEY"
    assert command == wanted.replace("KEY", f"{MAILBOX}/7")


@pytest.mark.parametrize(
    ("state", "command"),
    [
        (State.STUCK, "reconcile findings --retry"),
        (State.REPORTED, "reconcile explain"),
        (State.INTENDED, "reconcile explain"),
    ],
)
def test_others_have_a_command_too(state: State, command: str) -> None:
    assert command_of(replace(HELD, state=state, waits=None)) == f"{command} {MAILBOX}/7"


def test_nothing_of_a_user_acts_on_the_page() -> None:
    """A mailbox name, a flag, a pause's reason, an id: each may hold HTML."""
    evil = replace(
        HELD,
        slot=Slot(EVIL, EVIL),
        sentence=f"mailbox {EVIL} is missing",
        truth=(Row({"name": EVIL, "userflags": frozenset({EVIL})}),),
        before=Row({"name": EVIL}),
        waits=Waiting(Wait.PAUSE, f"paused by ana: {EVIL}"),
    )
    status = replace(CALM, pauses=(EVIL,), losses=(EVIL,), held=(EVIL,))
    text = shown(evil, status=status, title=EVIL, unready=(EVIL,), problems=(EVIL,), at=EVIL)
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script" not in text
    tags = set(re.findall(r"<(\w+)", text))
    assert tags <= TAGS
    links = re.findall(r'<[^>]*\b(?:src|href)\s*=\s*"?([^" >]*)', text)
    assert links == ["/status", "/metrics"]


def test_a_command_can_be_pasted_into_a_shell() -> None:
    slot = Slot("user; rm -rf ~", "box")
    command = command_of(replace(HELD, slot=slot))
    assert shlex.split(command)[-1] == "user; rm -rf ~/box".replace("/box", "") + "/box"


def test_the_page_loads_itself_again_and_nothing_else() -> None:
    text = shown(HELD)
    assert '<meta http-equiv="refresh" content="30">' in text
    assert "http:" not in text
    assert "https:" not in text


def test_what_is_wrong_comes_first() -> None:
    assert "Ready; nothing is wrong." in shown()
    text = shown(unready=("no batch has ended for 300 s",), problems=("3 stuck",))
    assert "not ready: no batch has ended for 300 s" in text
    assert "3 stuck" in text
    assert "nothing is wrong" not in text


# --- what a process serves


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Routes:
    monkeypatch.setattr(web, "status", lambda _settings: CALM)
    views = [OpenFindingView(HELD, MESSAGE)]
    monkeypatch.setattr(web, "open_findings", lambda _settings: iter(views))
    metrics = Metrics(CollectorRegistry())
    metrics.sampled_looks.labels("messages", "600", "consistent").inc(3)
    return pages(Settings(), Health("supervising"), metrics)


def test_both_show_the_nines_of_this_process(served: Routes) -> None:
    told = json.loads(served["/status"]().text)
    assert told["keyspace"] == "apache_james"
    assert told["nines"][0]["consistent"] == 3
    text = served["/"]().text
    assert "consistent after 600 s, messages: 100 % of 3 sampled changes" in text
    assert "not ready: it starts" in text


def test_while_cassandra_is_away_both_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "status", Mock(side_effect=Unreachable("no host <answers>")))
    routes = pages(Settings(), Health("supervising"))
    for path in ("/", "/status"):
        assert routes[path]().status == UNAVAILABLE
    assert "no host &lt;answers&gt;" in routes["/"]().text
    assert json.loads(routes["/status"]().text) == {"error": "no host <answers>"}


def test_readers_add_no_reads() -> None:
    read, now = Mock(return_value=1), [0.0]
    kept = Kept(read, clock=lambda: now[0])
    assert [kept.get(), kept.get()] == [1, 1]
    assert read.call_count == 1
    now[0] = KEPT_FOR + 1
    kept.get()
    assert read.call_count == 2


def test_the_newest_findings_are_shown() -> None:
    many = [OpenFindingView(replace(HELD, found_at=at), RIGHT_LISTS) for at in range(2 * SHOWN)]
    found = newest(iter(many))
    assert [each.finding.found_at for each in found] == list(range(2 * SHOWN - 1, SHOWN - 1, -1))
