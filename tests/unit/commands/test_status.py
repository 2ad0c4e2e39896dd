"""`reconcile status`: the lag is what is not read yet, and a person sees what needs one."""

import json
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Bookmark
from checkpoints.clock import now_micros
from checkpoints.lease import Holder
from checkpoints.losses import Loss
from checkpoints.sweeps import SweepRecord
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import SECOND, Kind, Slot
from reconcilers.words.waiting import RULES, Wait, Waiting
from streaming import app
from streaming.again.last_sweep import NOT_SWEPT
from streaming.commands.look import status
from streaming.commands.look.status import (
    open_totals,
    stream_status,
    told_losses,
    with_a_stream,
)
from streaming.commands.look.status_check import problems
from streaming.commands.look.status_shown import (
    REACHABLE,
    OpenCount,
    Status,
    StreamStatus,
    as_json,
    as_text,
)
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.endpoint import serve
from streaming.monitoring.lag import PartitionLag
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.scrape import gauge
from streaming.settings import MetricsSettings, Mode, Settings
from streaming.settings.work import RightsSettings
from tests.builders.canaries import reached
from tests.builders.rights import FROM_EVENTS
from tests.builders.rows import FAMILY
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.progress import MemoryBookmarks
from tests.fakes.checkpoints.sweeps import MemorySweeps

CALM = Status("apache_james", 45.0, 5.0, REACHABLE, (), (), 0, 0, {}, None)
STREAM = StreamStatus(
    name="repair",
    family="message",
    last_settled="2026-11-21T10:00:00+00:00",
    lag=(
        PartitionLag("t", 0, end=10, read=7, oldest=1_795_255_140_000_000),
        PartitionLag("t", 1, end=10, read=10),
        PartitionLag("t", 2, end=4, read=None),
    ),
    records=3,
    seconds=12.4,
    holder=Holder("x", "mail1:77"),
)


def text(**changes: Any) -> str:
    return "\n".join(as_text(replace(CALM, **changes)))


def test_a_quiet_system_is_told_in_a_few_lines() -> None:
    assert text().splitlines() == [
        "keyspace apache_james: D = 45 s, W = 5 s",
        "it is not known since when every change is received: lineage begins when every watched"
        " table is captured and a stream has received canaries of every node; `reconcile doctor`"
        " checks both",
        f"message: {NOT_SWEPT}",
        "breakers closed",
        "no open findings",
    ]


def test_what_needs_a_person_is_told_with_the_command() -> None:
    finding = OpenCount("messages", "missing_row", "stuck", 3)
    told = text(stuck=3, findings=(finding,), breakers={"repairs": "1001 in a minute"})
    assert "breaker repairs is OPEN: 1001 in a minute" in told
    assert "`reconcile resume --breaker repairs`" in told
    assert "3 stuck: `reconcile findings --state stuck`" in told


@pytest.mark.parametrize("wait", Wait)
def test_each_wait_is_counted_and_names_its_way_out(wait: Wait) -> None:
    journal, slot = MemoryJournal(), Slot(UUID(int=1), 1)
    held = Finding(
        *("message", "messages", slot, None, Kind.MISSING_ROW, State.HELD),
        sentence="a sentence",
        found_at=1,
        waits=Waiting(wait, "any text; reconcile resume"),
    )
    for each in (held, replace(held, slot=Slot(UUID(int=1), 2), state=State.STUCK)):
        journal.put(each)
    found = open_totals(journal)
    counts, waits = found.counts, found.waits
    assert waits == {wait.value: 1}
    assert f"1 wait ({wait.value}): {RULES[wait]}" in text(findings=counts, waits=waits)
    assert "wait (" not in text(findings=counts)
    assert json.loads(json.dumps(as_json(replace(CALM, waits=waits))))["waits"] == {wait.value: 1}


def test_the_oldest_right_that_should_be_gone_has_a_line_of_its_own() -> None:
    journal, place = MemoryJournal(), partial(Slot, "bob")
    extra = Finding(
        *("rights", "user_rights", place(UUID(int=1)), None, Kind.EXTRA_ROW, State.HELD),
        sentence="",
        found_at=700 * SECOND,
    )
    journal.put(extra)
    journal.put(replace(extra, slot=place(UUID(int=2)), found_at=600 * SECOND))
    journal.put(replace(extra, slot=place(UUID(int=3)), found_at=1, kind=Kind.MISSING_ROW))
    message = replace(extra, family="message", projection="messages", found_at=1)
    journal.put(replace(message, slot=Slot(UUID(int=1), 1)))
    age = open_totals(journal).stale_right(1_000 * SECOND)
    assert age == 400
    told = [line for line in text(stale_right=age).splitlines() if "400 s after" in line]
    assert [line.partition(":")[0] for line in told] == ["STALE RIGHT"]
    assert as_json(replace(CALM, stale_right=age))["stale_right"] == 400
    assert open_totals(MemoryJournal()).stale_right(1) is None


PAUSED = "repairs of all are paused by alice: a look"
OF_ITSELF = "repairs of all wait; `reconcile pilot --user NAME`"
A_PILOT = "only user bob is repaired: pilot of alice: a first try"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"pauses": (PAUSED,)}, f"PAUSED: {PAUSED}; `reconcile resume --pause NAME`"),
        ({"held": (OF_ITSELF,), "pauses": ("",)}, f"HELD: {OF_ITSELF} ends it\nPAUSED:"),
        ({"pilots": (A_PILOT,)}, f"PILOT: {A_PILOT}; `reconcile pilot --end` ends it"),
        ({"on_hold": 3}, "3 keys are on hold: `reconcile findings --on-hold`"),
        (
            {"kafka": "no Kafka broker answers at b"},
            "the lag is not known: no Kafka broker answers",
        ),
    ],
    ids=["a pause", "what the product itself holds, first", "a pilot", "holds", "a silent broker"],
)
def test_what_holds_something_is_told_with_the_command_that_ends_it(
    changes: dict[str, Any], line: str
) -> None:
    assert line in text(**changes)


def test_a_stream_tells_its_lag_and_who_runs_it() -> None:
    told = text(streams=(STREAM,))
    assert "repair stream: last settled 2026-11-21T10:00:00+00:00, run by mail1:77" in told
    assert "3 records are not settled yet, the oldest is 12 s old" in told
    assert "t/0: 3 of 10" in told
    assert "t/1" not in told
    assert "t/2: nothing settled yet, ends at 4" in told
    assert "repair stream of rights: last settled" in text(
        streams=(replace(STREAM, family="rights"),)
    )


def test_losses_that_no_sweep_has_made_good_are_told_the_newest_first() -> None:
    spans = tuple(f"2027-01-15T08:0{at}: node n1, james/0: 95 s" for at in range(5, 0, -1))
    told = text(losses=spans)
    assert f"LOST: {spans[0]}" in told
    assert f"LOST: {spans[2]}" in told
    assert spans[3] not in told
    assert "LOST: 2 times more, since the last whole sweep" in told


def test_a_loss_is_told_until_each_family_that_it_concerns_was_swept() -> None:
    of_all, of_rights, sweeps = MemoryLosses(), MemoryLosses(), MemorySweeps()
    of_all.record(Loss(10 * SECOND, "canaries of n1"))
    of_rights.record(Loss(20 * SECOND, "unread records of james/0"))

    def losses(of: Family) -> MemoryLosses:
        return of_all if of is FAMILY else of_rights

    def told() -> list[str]:
        return [each[27:] for each in told_losses(losses, sweeps, [FAMILY, FROM_EVENTS])]

    def sweep(began_at: int, family: Family) -> None:
        record = SweepRecord(began_at * SECOND, "ana", "", family.names, 8)
        sweeps.begin(record)
        sweeps.end(record, record.began_at + 1, "all")

    both = ["canaries of n1", "rights: unread records of james/0"]
    assert told() == both
    sweep(30, FAMILY)
    assert told() == both, "the rights that changed then were not compared"
    sweep(15, FROM_EVENTS)
    assert told() == both[1:]
    sweep(31, FROM_EVENTS)
    assert told() == []


def test_a_family_without_a_stream_is_not_told_as_never_swept() -> None:
    """Its table may be one that this James does not write."""
    settings, bookmarks = Settings(rights=RightsSettings(truth="eventstore")), MemoryBookmarks()

    def told() -> list[str]:
        return [each.name for each in with_a_stream(settings, bookmarks)]

    assert told() == ["message"]
    of_rights = StreamNames.of(settings, Mode.OBSERVE).bookmarks(settings.families()[1])
    bookmarks.record(Bookmark(of_rights, {}))
    assert told() == ["message", "rights"]


def test_json_has_the_same_by_the_names_that_scripts_know() -> None:
    finding = OpenCount("messages", "missing_row", "stuck", 3)
    shown = as_json(replace(CALM, streams=(STREAM,), findings=(finding,)))
    told = json.loads(json.dumps(shown))
    assert list(told) == [
        *("keyspace", "delay", "window", "kafka", "streams", "findings", "stuck", "unresolved"),
        *("breakers", "watched_since", "pauses", "pilots", "held", "sweeps", "losses", "on_hold"),
        *("waits", "stale_right", "executors", "nines"),
    ]
    assert told["findings"] == [
        {"projection": "messages", "kind": "missing_row", "state": "stuck", "open": 3}
    ]
    (stream,) = told["streams"]
    assert stream["holder"] == {"id": "x", "host": "mail1:77"}
    where = {"topic": "t", "partition": 0, "end": 10, "read": 7}
    assert stream["lag"][0] == {**where, "records": 3, "oldest": "2026-11-21T09:59:00+00:00"}
    assert stream["lag"][2]["records"] is None


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"pauses": ("all",), "pilots": ("bob",), "on_hold": 3, "unresolved": 1}, ""),
        ({"streams": ()}, "no stream has run yet"),
        ({"kafka": "no broker answers"}, "Kafka does not answer: no broker answers"),
        ({"breakers": {"removals": "101"}}, "breaker removals is open"),
        ({"stuck": 2}, "2 findings are stuck"),
        ({"losses": ("a", "b")}, "2 losses of events since the last whole sweep"),
        ({"held": ("`reconcile resume --own-keyspace`",)}, "held: `reconcile resume --own-"),
        ({"executors": 0}, "Spark has no executors"),
        (
            {"streams": (replace(STREAM, seconds=656.0),)},
            "the oldest record of the repair stream is 656 s old",
        ),
        (
            {"streams": (STREAM, replace(STREAM, family="rights", seconds=None))},
            "the lag of the repair stream of rights is not known",
        ),
    ],
)
def test_a_check_says_what_is_wrong_but_not_what_a_person_wants(
    changes: dict[str, Any], wrong: str
) -> None:
    found = replace(CALM, **({"streams": (STREAM,)} | changes))
    told = "; ".join(problems(found))
    assert told.startswith(wrong)
    assert bool(told) is bool(wrong)


def test_a_check_leaves_out_the_mode_that_does_not_run_any_more() -> None:
    old = replace(STREAM, name="observe", seconds=1e6, last_settled="2026-11-20T10:00:00+00:00")
    assert not list(problems(replace(CALM, streams=(old, STREAM))))
    never = replace(old, last_settled=None)
    assert not list(problems(replace(CALM, streams=(STREAM, never))))


def test_a_check_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replace(CALM, streams=(STREAM,))
    monkeypatch.setattr(status, "status", lambda _: found)
    assert app.main(["status", "--check"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"
    found = replace(found, stuck=1, breakers={"removals": "101"})
    assert app.main(["status", "--check"]) == 1
    assert capsys.readouterr().out == "breaker removals is open; 1 findings are stuck\n"
    assert app.main(["status"]) == 0


def test_executors_of_a_cluster_are_told_from_the_streams_metrics() -> None:
    assert "executors" not in text()
    assert "executors of Spark: 2\n" in text(executors=2)
    assert "executors of Spark: 0; without any nothing is compared" in text(executors=0)
    metrics = Metrics(CollectorRegistry())
    here = MetricsSettings(host="127.0.0.1", port=serve(metrics, MetricsSettings(port=0)))
    assert gauge(here, "reconciler_executors") is None, "a local master"
    metrics.executors.set(2)
    assert gauge(here, "reconciler_executors") == 2
    assert gauge(MetricsSettings(port=1), "reconciler_executors") is None


def test_ten_million_records_are_as_late_as_the_oldest_of_them() -> None:
    written = now_micros() - 3_600_000_000
    found = stream_status(
        Mode.REPAIR, FAMILY, None, None, (PartitionLag("t", 0, 10_000_000, 0, written),)
    )
    assert found.records == 10_000_000
    assert found.seconds == pytest.approx(3_600, abs=60)


def test_without_a_broker_no_lag_is_told() -> None:
    found = stream_status(Mode.REPAIR, FAMILY, None, None, ())
    assert (found.records, found.seconds) == (None, None)
    assert "settled yet" not in text(streams=(found,))


def test_of_each_node_the_newest_canary_that_came_in_all_partitions_is_shown() -> None:
    second = 1_000_000
    lanes = {("n1", "james", 0): reached(90 * second), ("n1", "james", 1): reached(60 * second)}
    newest = Bookmark("stream", {}, recorded_at=100 * second, heard=lanes)
    found = stream_status(Mode.REPAIR, FAMILY, newest, None, ())
    assert found.canaries == {"n1": "1970-01-01T00:01:00+00:00"}
    assert "node n1: canaries up to 1970-01-01T00:01:00+00:00 were received" in text(
        streams=(found,)
    )
