"""One option for what commands print, the same rows in each form, and nothing abbreviated."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.commands.arguments.output import FORMATS, formatted
from streaming.commands.arguments.stored_times import with_iso_times
from streaming.commands.doctor import command as doctor
from streaming.commands.doctor.checks.check import fine, problem
from streaming.commands.person import pause
from tests.fakes.checkpoints.pauses import MemoryPauses

ROWS = [
    {"name": 'a, "b"', "several": ["x", "y"], "number": 3, "none": None},
    {"name": "=1+1", "several": [], "number": -1, "none": None},
]
COLUMNS = ("name", "several", "number", "none")
WITH_ROWS = ("config", "findings", "doctor", "bookmark", "pause", "mailboxes")
WITH_OBJECTS = ("status", "explain", "lwt-report")
NEEDED = {"config": ["show"], "bookmark": ["--list"], "explain": ["bob"]}


@pytest.mark.parametrize("name", WITH_ROWS + WITH_OBJECTS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_command_that_prints_rows_has_one_option(name: str, form: str) -> None:
    words = [name, *NEEDED.get(name, []), "--format", form]
    if name in WITH_OBJECTS and form == "csv":
        with pytest.raises(SystemExit):
            app.parsed(words)
    else:
        assert app.parsed(words).format == form


@pytest.mark.parametrize(
    "words",
    [["status", "--json"], ["stream", "--mod", "repair"], ["--vers"], ["status", "--form", "json"]],
)
def test_options_are_neither_abbreviated_nor_those_of_before(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        app.parsed(words)
    assert refused.value.code == ExitCode.USAGE


def test_rows_are_the_same_in_each_form() -> None:
    assert json.loads("\n".join(formatted("json", ROWS, COLUMNS))) == ROWS
    assert [json.loads(line) for line in formatted("jsonl", ROWS, COLUMNS)] == ROWS
    assert [*csv.reader(formatted("csv", ROWS, COLUMNS))] == [
        [*COLUMNS],
        ['a, "b"', '["x", "y"]', "3", ""],
        ["'=1+1", "[]", "'-1", ""],
    ]
    assert [*formatted("table", ROWS, COLUMNS)] == [
        "name    several     number  none",
        'a, "b"  ["x", "y"]  3',
        "=1+1    []          -1",
    ]
    assert [*formatted("json", [], COLUMNS)] == ["[]"]


def test_checks_are_rows_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [fine("all is there"), problem("CDC is off", "turn it on", cql=("ALTER",))]
    monkeypatch.setattr(doctor, "examine", lambda _: iter(checks))
    monkeypatch.setattr(doctor, "_refuse_another", lambda _: None)
    assert app.main(["doctor", "--format", "jsonl"]) == ExitCode.PROBLEMS
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["level"], first["advice"]) == ("ok", "")
    assert (second["level"], second["cql"]) == ("problem", ["ALTER"])
    assert app.main(["doctor"]) == ExitCode.PROBLEMS
    assert capsys.readouterr().out.splitlines() == [str(each) for each in checks]
    assert app.main(["doctor", "--fix", "--format", "json"]) == ExitCode.USAGE


def test_pauses_are_rows_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = MemoryPauses()
    monkeypatch.setattr(pause, "pauses_of", lambda _: pauses)
    assert app.main(["pause", "removals", "--reason", "a look", "--who", "ana"]) == 0
    capsys.readouterr()
    assert app.main(["pause", "--list", "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert tuple(told) == pause.COLUMNS
    expected: dict[str, Any] = {"what": "removals", "who": "ana", "reason": "a look"}
    assert told.items() >= (expected | {"stands": True, "ended_at": None}).items()


def test_times_are_texts_wherever_they_are_and_cells_stay_as_they_are() -> None:
    at = 1_700_000_000_000_001
    told = "2023-11-14T22:13:20.000001+00:00"
    stored = {
        "at": at,
        "attempts": at,
        "oldest": None,
        "written": [at, None],
        "before": {"cells": {"at": at, "written": [at]}, "written": {"flagseen": at, "uid": None}},
        "writes": [{"at": at, "cells": {"at": at}}],
        "accepted": [{"found_at": at, "error": {"count": at}}],
        "truth_deletes": {"m": [at]},
    }
    assert with_iso_times(stored) == {
        "at": told,
        "attempts": at,
        "oldest": None,
        "written": [told, None],
        "before": {
            "cells": {"at": at, "written": [at]},
            "written": {"flagseen": told, "uid": None},
        },
        "writes": [{"at": told, "cells": {"at": at}}],
        "accepted": [{"found_at": told, "error": {"count": at}}],
        "truth_deletes": {"m": [told]},
    }
    assert with_iso_times({"at": 2**62}) == {"at": 2**62}, "a client may write any time"
