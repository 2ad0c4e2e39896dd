"""The first line of a report, the record of a run, and the page of all runs."""

from dataclasses import replace

import pytest

from deploy.nemesis.__main__ import PAGE, RECORDS
from deploy.nemesis.record import (
    RunRecord,
    first_line,
    page,
    record_as_json,
    record_from_json,
    violations_by_name,
)
from deploy.nemesis.verdict import Judgement, Violation, ViolationName

RUN = RunRecord(
    seed=7,
    release="5.0.9",
    at="2026-11-28T01:00:00Z",
    operations=15_042,
    rows=75_210,
    faults={"kill": 3, "pause": 2},
    violations=violations_by_name(Judgement()),
    weakened=12,
    convergence_s=41.5,
)


def test_the_first_line() -> None:
    assert first_line(RUN) == (
        "15,042 operations, 75,210 changed rows, 5 faults of 2 kinds, RF 3: 0 lost, 0 overridden,"
        " 0 removed without a delete, 0 truth writes, 0 doubled deltas; longest convergence 41.5 s"
    )


@pytest.mark.parametrize("name", list(ViolationName))
def test_the_first_line_counts_each_violation(name: ViolationName) -> None:
    judgement = Judgement([Violation(name, "mailbox", ("a",), "name", {})] * 2)
    run = replace(RUN, violations=violations_by_name(judgement))
    assert f" 2 {name.value.split()[0]}" in first_line(run)
    assert not run.passed


def test_the_first_line_names_what_is_left_to_a_person() -> None:
    assert " 2 left to a person;" in first_line(replace(RUN, left=2))
    assert replace(RUN, left=2).passed


def test_a_run_that_never_agreed_has_failed() -> None:
    run = replace(RUN, convergence_s=None)
    assert first_line(run).endswith("longest convergence never")
    assert (RUN.passed, run.passed) == (True, False)


def test_a_record_is_read_as_it_was_written() -> None:
    assert record_from_json(record_as_json(RUN)) == RUN


def test_the_page_is_made_of_the_records_that_are_kept() -> None:
    records = [record_from_json(each.read_text("utf-8")) for each in RECORDS.glob("*.json")]
    assert PAGE.read_text("utf-8") == page(records)
    assert "No run is kept yet." in page([])


def test_the_page_has_all_runs_and_all_faults_by_release() -> None:
    old = replace(RUN, release="4.1.9", at="2026-11-27T01:00:00Z", seed=3, faults={"loss": 4})
    lines = page([RUN, old]).splitlines()
    assert "2 runs: 30,084 acknowledged operations, 150,420 changed rows, 0 failed." in lines
    runs = [line for line in lines if ", seed " in line]
    assert [line.split("|")[1].strip() for line in runs] == [
        "2026-11-27T01:00:00Z, seed 3",
        "2026-11-28T01:00:00Z, seed 7",
    ]
    assert lines[-4:] == [
        "|---|---|---|",
        "| kill | 0 | 3 |",
        "| loss | 4 | 0 |",
        "| pause | 0 | 2 |",
    ]
