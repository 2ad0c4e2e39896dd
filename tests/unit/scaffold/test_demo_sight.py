"""The demo reads the reconciler's metrics, and knows when nothing is left to happen."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from deploy.demo.pace import Pace
from deploy.demo.sight import Quiet, Sight, sight_of, slow_readings
from streaming.monitoring.metrics import Metrics


def metrics_text() -> str:
    metrics = Metrics(CollectorRegistry())
    for state in ("intended", "intended", "verified"):
        metrics.findings.labels("messages", "missing_row", state).inc()
    metrics.open_findings.labels("messages", "missing_row", "intended").set(1)
    metrics.open_findings.labels("messages", "duplicate_uid", "reported").set(1)
    metrics.findings.labels("mailbox_counters", "wrong_counter", "intended").inc()
    metrics.open_findings.labels("mailbox_counters", "wrong_counter", "intended").set(1)
    metrics.lag_records.labels("james.mail.imapuidtable", "0").set(3)
    metrics.lag_records.labels("james.mail.imapuidtable", "1").set(4)
    metrics.lag_records.labels("suspects", "0").set(1)
    metrics.breaker.labels("repairs").set(0)
    metrics.breaker.labels("removals").set(1)
    metrics.capture_delay.labels("n1").set(0.2)
    metrics.capture_delay.labels("n2").set(0.7)
    metrics.losses.labels("canaries").inc(2)
    metrics.losses.labels("retention").inc(3)
    for seconds in (1.0, 2.0):
        metrics.batch_duration.observe(seconds)
    metrics.examined.labels("message").inc(12)
    metrics.last_batch.labels("message").set(1000.5)
    metrics.examined.labels("mailbox_tally").inc(3)
    metrics.last_batch.labels("mailbox_tally").set(2000.5)
    return generate_latest(metrics.registry).decode()


def test_it_is_read_from_the_metrics_that_the_stream_serves() -> None:
    sight = sight_of(metrics_text())
    missing = ("messages", "missing_row")
    assert sight.kinds() == [
        ("mailbox_counters", "wrong_counter"),
        ("messages", "duplicate_uid"),
        missing,
    ]
    assert (sight.found(missing), sight.open(missing)) == (2, 1)
    assert [sight.came_to(missing, state) for state in ("intended", "verified")] == [2, 1]
    assert sight.reported() == {"duplicate_uid": 1}
    assert sight.in_work() == 1
    assert sight.lag == {"james.mail.imapuidtable": 7, "suspects": 1}
    assert sight.records_behind() == 8
    assert sight.breakers == ("removals",)
    assert sight.losses == 5
    assert sight.batch_duration == 1.5
    assert (sight.capture_delay, sight.examined, sight.last_batch) == (0.7, 12, 1000.5)


def test_the_last_batch_is_that_of_the_family_whose_last_one_is_oldest() -> None:
    metrics = Metrics(CollectorRegistry())
    for family, ended in (("message", 1000.5), ("rights", 900.5), ("mailbox_tally", 10.5)):
        metrics.last_batch.labels(family).set(ended)
    assert sight_of(generate_latest(metrics.registry).decode()).last_batch == 900.5


def test_nothing_is_seen_before_the_first_batch() -> None:
    assert sight_of("") == Sight()


REPORTED = Sight(
    findings={("messages", "duplicate_uid", "reported"): 1},
    standing={("messages", "duplicate_uid", "reported"): 1},
    lag={"events": 0, "suspects": 2},
    last_batch=100.0,
    frontier=101.0,
)


@pytest.mark.parametrize(
    "times",
    [(100, 102, 102, 104, 106, 108, 109, 110), (100, 120, 140, 160, 180, 200)],
    ids=["by the times of the batches", "not after a few long ones"],
)
def test_quiet_lasts(times: tuple[int, ...]) -> None:
    quiet = Quiet(10.0)
    said = [quiet.reached(replace(REPORTED, last_batch=float(at))) for at in times]
    assert said == [False] * (len(times) - 1) + [True]


def test_what_was_written_before_must_have_been_looked_at() -> None:
    """Nothing new is seen while nothing is read, too."""
    quiet = Quiet(10.0)
    late = replace(REPORTED, frontier=100.0)
    assert not any(quiet.reached(replace(late, last_batch=100.0 + n)) for n in range(20))
    assert quiet.reached(replace(late, last_batch=120.0, frontier=100.1))


def test_anything_new_ends_the_quiet() -> None:
    for change in (
        replace(REPORTED, standing={("messages", "missing_row", "intended"): 1}, last_batch=105.0),
        replace(REPORTED, findings={("messages", "missing_row", "verified"): 1}, last_batch=105.0),
        replace(REPORTED, standing={("unseen_uids", "extra_row", "held"): 1}, last_batch=105.0),
    ):
        quiet = Quiet(10.0)
        assert not quiet.reached(REPORTED)
        assert not quiet.reached(change)
        later = [replace(REPORTED, last_batch=105.0 + n) for n in range(10)]
        assert not any(quiet.reached(sight) for sight in later)


def test_counters_that_are_counted_again_do_not_end_the_quiet() -> None:
    quiet = Quiet(10.0)
    counting = ("current_quota", "wrong_counter", "intended")
    sights = [
        replace(REPORTED, standing={**REPORTED.standing, counting: n}, last_batch=100.0 + 2 * n)
        for n in range(6)
    ]
    assert [quiet.reached(sight) for sight in sights] == [False] * 5 + [True]
    assert quiet.unrest(sights[-1]) is None


def test_it_says_what_is_still_to_be_done() -> None:
    quiet = Quiet(10.0)
    assert quiet.unrest(REPORTED) is None
    stuck = replace(REPORTED, standing={("messages", "missing_row", "stuck"): 1})
    assert quiet.unrest(stuck) == "1 findings are in work"


def test_it_says_what_it_waits_for() -> None:
    quiet = Quiet(10.0)
    stuck = replace(REPORTED, standing={("messages", "missing_row", "stuck"): 2})
    assert not quiet.reached(stuck)
    assert quiet.waits_for(stuck) == "2 findings are in work, waiting until they are verified"
    unread = replace(REPORTED, frontier=90.0)
    assert not quiet.reached(unread)
    assert quiet.waits_for(unread) == "waiting until all that was written has been looked at"
    assert quiet.waits_for(REPORTED) == "waiting until nothing new was found for 10 s"


def test_it_says_which_reading_is_too_slow() -> None:
    pace = Pace(delay=10.0)
    well = Sight(last_batch=995.0, frontier=985.0, batch_duration=3.0, capture_delay=1.0)
    assert slow_readings(well, pace, 1000.0) == []
    looked_at = "all that was written has been looked at only up to 100 s ago"
    for slow, told in (
        (replace(well, batch_duration=30.0), "batches took 30 s (at most 10 s"),
        (replace(well, capture_delay=95.0), "a change was captured after 95 s (at most 10 s"),
        (replace(well, last_batch=900.0), "the last batch ended 100 s ago (at most 17 s"),
        (replace(well, frontier=900.0), f"{looked_at} (at most 34 s"),
    ):
        assert slow_readings(slow, pace, 1000.0) == [f"{told} are expected)"]
