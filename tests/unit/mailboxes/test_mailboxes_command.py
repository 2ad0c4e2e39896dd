"""``reconcile mailboxes`` over tables in memory: what it reports, prints, writes, and refuses."""

import argparse
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from reconcilers.mailboxes.plan import MailboxWrite
from reconcilers.mailboxes.rows import PathRow
from reconcilers.words.errors import Misconfigured, NotOffline, Unreachable
from streaming import app
from streaming.commands.mailboxes import command, compare
from streaming.settings import Settings
from streaming.tables.mailbox_writer import as_text
from tests.builders.mailboxes import A, B, C, P, Q, R, Row, mailbox, path
from tests.fakes.mailbox_tables import MailboxTables

WORDS = ("--fix", "--confirm", "ALL-SERVICES-ARE-OFFLINE")
GHOST: list[Row] = [mailbox(A, P), mailbox(B, P), path(P, A)]
RENAMED: list[Row] = [mailbox(C, Q), path(R, C)]


class Office:
    """Runs the command; ``waits`` are the keys that it waited for, ``users`` why users write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tables: MailboxTables) -> None:
        self.tables, self.waits, self.users = tables, list[int](), ""
        self.traffic_asked = 0
        self.meanwhile: Any = lambda: None
        monkeypatch.setattr(command, "connect", lambda _: None)
        monkeypatch.setattr(command, "MailboxObjects", lambda *_: tables)
        monkeypatch.setattr(command, "MailboxWriter", lambda *_: tables)
        monkeypatch.setattr(command, "Nodes", lambda _: argparse.Namespace(ids=set))
        monkeypatch.setattr(command, "refuse_traffic", self._refuse)
        monkeypatch.setattr(command, "waited", lambda _: self._wait)

    def run(self, right: str, *words: str) -> int:
        settings = Settings.model_validate({"mailboxes": {"right": right}})
        arguments = app.parsed(["mailboxes", *words])
        return int(arguments.run(settings, arguments))

    def _wait(self, keys: int) -> None:
        self.waits.append(keys)
        self.meanwhile()

    def _refuse(self, *_: object) -> None:
        self.traffic_asked += 1
        if self.users:
            raise NotOffline(self.users)


def office(
    monkeypatch: pytest.MonkeyPatch, rows: Sequence[Row], listed: frozenset[UUID] = frozenset()
) -> Office:
    return Office(monkeypatch, MailboxTables.of(rows, listed))


def test_right_tables_are_read_once_and_nothing_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, [mailbox(A, P), path(P, A)])
    assert place.run("none") == 0
    assert place.waits == []
    assert capsys.readouterr().out == "1 mailboxes and 1 paths were read: no conflict\n"


def test_a_conflict_shows_both_sides_and_the_merge_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, GHOST)
    assert place.run("none") == 1
    told = capsys.readouterr().out
    assert "two_ids_of_one_path  reported: two mailboxes name one path" in told
    assert f"mailbox: {A} is #private:ana:P, uidvalidity 1, written 1970-01-01" in told
    assert f"mailboxpathv3: #private:ana:P is {A}, uidvalidity 101" in told
    body = json.dumps({"mergeOrigin": str(B), "mergeDestination": str(A)})
    assert f"POST /cassandra/mailbox/merging {body}" in told
    assert place.tables.sent == []


def test_json_has_both_sides_and_the_writes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, [*GHOST, *RENAMED])
    assert place.run("path", "--format", "jsonl") == 1
    ghost, renamed = map(json.loads, capsys.readouterr().out.splitlines())
    assert (ghost["kind"], ghost["outcome"]) == ("two_ids_of_one_path", "reported")
    assert ghost["left"] == ["needs_a_merge"]
    assert ghost["merges"] == [{"mergeOrigin": str(B), "mergeDestination": str(A)}]
    assert [row["mailboxid"] for row in renamed["mailbox"]] == [str(C)]
    assert [row["name"] for row in renamed["mailboxpathv3"]] == ["R"]
    assert len(renamed["writes"]) == 1


def test_what_changes_during_the_delay_is_not_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, [path(P, A)])
    place.meanwhile = lambda: place.tables.by_id.update({A: mailbox(A, P)})
    assert place.run("none") == 0
    assert place.waits == [2]
    assert "no conflict; 1 changed meanwhile" in capsys.readouterr().out


def test_a_row_that_names_another_is_followed_until_all_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chain: list[Row] = [mailbox(A, P), path(P, B), mailbox(B, Q), path(Q, C), mailbox(C, R)]
    place = office(monkeypatch, chain)
    assert place.run("none") == 1
    assert place.waits == [6]
    assert "1 conflicts (1 reported)" in capsys.readouterr().out


def test_the_dry_run_prints_exactly_the_writes_of_the_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swapped: list[Row] = [mailbox(A, Q), mailbox(B, P), path(P, A), path(Q, B)]
    place = office(monkeypatch, [*swapped, path(R, C)])
    assert place.run("mailbox", "--fix", "--dry-run") == 1
    shown = [line.strip() for line in capsys.readouterr().out.splitlines() if " IF " in line]
    assert (place.tables.sent, place.traffic_asked) == ([], 0)
    assert place.run("mailbox", *WORDS) == 0
    assert shown == [as_text(each, "apache_james") for each in place.tables.sent]
    assert len(shown) == 3
    assert place.run("mailbox") == 0


def test_a_merge_is_left_and_the_others_are_fixed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, [*GHOST, *RENAMED])
    assert place.run("path", *WORDS) == 1
    told = capsys.readouterr().out
    assert "two_ids_of_one_path  left" in told
    assert "path_mismatch  fixed" in told
    assert "POST /cassandra/mailbox/merging" in told
    assert len(place.tables.sent) == 1


def test_the_last_row_of_a_mailbox_with_messages_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, [path(P, A), *RENAMED], listed=frozenset({A}))
    assert place.run("mailbox", *WORDS) == 1
    assert place.tables.asked == [A]
    assert P in place.tables.by_path
    assert "the mailbox has had messages" in capsys.readouterr().out


def test_users_who_write_refuse_the_fix_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = office(monkeypatch, RENAMED)
    place.users = "users may be writing"
    with pytest.raises(NotOffline):
        place.run("path", *WORDS)
    assert place.tables.sent == []
    assert place.run("path", *WORDS, "--ignore-traffic") == 0
    assert place.traffic_asked == 1


def test_a_row_that_changes_before_its_write_ends_the_fix_of_that_conflict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = office(monkeypatch, RENAMED)

    def renamed() -> None:
        place.tables.by_path[Q] = PathRow(Q, C, 1, (9,))
        place.tables.by_id[C] = mailbox(C, P, written=9)

    monkeypatch.setattr(command, "refuse_traffic", lambda *_: renamed())
    assert place.run("path", *WORDS) == 1
    assert place.tables.sent == []
    assert "path_mismatch  partly_fixed" in capsys.readouterr().out


def test_a_fix_that_dies_after_any_write_ends_the_same_when_it_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[Row] = [mailbox(A, Q), mailbox(B, P), path(P, A), path(Q, B), path(R, B)]
    whole = office(monkeypatch, rows)
    assert whole.run("mailbox", *WORDS) == 0
    for after in range(len(whole.tables.sent) + 1):
        place = office(monkeypatch, rows)
        send = place.tables.send

        def dies(
            write: MailboxWrite, after: int = after, tables: MailboxTables = place.tables
        ) -> bool:
            if len(tables.sent) == after:
                raise Unreachable("no answer")
            return MailboxTables.send(tables, write)

        monkeypatch.setattr(place.tables, "send", dies)
        if after < len(whole.tables.sent):
            with pytest.raises(Unreachable):
                place.run("mailbox", *WORDS)
        monkeypatch.setattr(place.tables, "send", send)
        assert place.run("mailbox", *WORDS) == 0
        assert place.tables.by_path == whole.tables.by_path
        assert place.tables.by_id == whole.tables.by_id


def test_very_many_differences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MOST_KEYS", 3)
    with pytest.raises(Misconfigured, match="4 ids and paths of 0 mailboxes and 2 paths"):
        office(monkeypatch, [path(P, A), path(Q, B)]).run("none")


@pytest.mark.parametrize(
    ("right", "words", "told"),
    [
        ("none", WORDS, "mailboxes.right is none"),
        ("path", ("--fix",), "add --confirm ALL-SERVICES-ARE-OFFLINE"),
        ("path", ("--fix", "--confirm", "all-services-are-offline"), "add --confirm ALL-SER"),
        ("path", ("--confirm", "ALL-SERVICES-ARE-OFFLINE"), "are for --fix"),
        ("path", ("--dry-run",), "are for --fix"),
        ("path", ("--ignore-traffic",), "are for --fix"),
        ("path", (*WORDS, "--username", "u"), "belong together"),
    ],
)
def test_a_fix_needs_the_setting_and_the_exact_words(
    right: str, words: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = office(monkeypatch, RENAMED)
    with pytest.raises(Misconfigured, match=told):
        place.run(right, *words)
    assert place.tables.sent == []
    assert place.waits == []
