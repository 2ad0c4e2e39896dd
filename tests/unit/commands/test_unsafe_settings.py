"""Settings under which a stream does not write: one line that names the setting and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.settings_page import page
from reconcilers.words.errors import Misconfigured
from streaming import app
from streaming.settings import GUARDED, Mode, Settings, load, refuse_unsafe


def settings(sections: dict[str, Any]) -> Settings:
    return Settings.model_validate(sections)


DANGEROUS: list[tuple[dict[str, Any], str]] = [
    ({"stream": {"delay": 34.9}}, "stream.delay is 34.9, not 35 s or more: James retries a write"),
    ({"cassandra": {"request_timeout": 46}}, "cassandra.request_timeout is 46 s, longer than"),
    ({"tally": {"looks": 1}}, "tally.looks is 1, not 2 or more: one look cannot tell"),
    ({"tally": {"max_update_lag": 0.5}}, "tally.max_update_lag is 0.5, not 1 s or more"),
    ({"tally": {"max_quota_lag": 59}}, "tally.max_quota_lag is 59, not 60 s or more: a backlog"),
    ({"tally": {"after_outage": 59}}, "tally.after_outage is 59, not 60 s or more"),
    ({"tally": {"correction_max_messages": 10**9}}, "is 1000000000, not 100000 or less"),
    (
        {"tally": {"correction_max_octets": 10**18}},
        "tally.correction_max_octets is 1e+18, not 10000000000 or",
    ),
    ({"tally": {"corrections_per_minute": 601}}, "tally.corrections_per_minute is 601, not 600 or"),
    ({"tally": {"correction_share": 1}}, "tally.correction_share is 1, not 0.5 or less"),
    ({"tally": {"share_min_looks": 10**9}}, "tally.share_min_looks is 1000000000, not 10000 or"),
    ({"canary": {"usual_delay": 86_400}}, "canary.usual_delay is 86400, not 300 s or less"),
    ({"canary": {"lost_after": 1}}, "canary.lost_after is 1, not 300 to 3600 s"),
    ({"canary": {"lost_after": 10**9}}, "canary.lost_after is 1000000000, not 300 to 3600 s"),
    (
        {"canary": {"longest_pause": 10**9}},
        "canary.longest_pause is 1000000000, not 3600 s or less",
    ),
    ({"repair": {"empty_truth_min_rows": 10**9}}, "is 1000000000, not 100 or less: a mailbox that"),
    ({"repair": {"suspects_per_minute": 10_001}}, "repair.suspects_per_minute is 10001, not 10000"),
    ({"repair": {"suspect_share": 1}}, "repair.suspect_share is 1, not 0.5 or less"),
    ({"repair": {"removals_per_minute": 1_001}}, "repair.removals_per_minute is 1001, not 1000 or"),
    ({"repair": {"removal_share": 0.2}}, "repair.removal_share is 0.2, not 0.1 or less"),
    ({"repair": {"share_min_keys": 10**9}}, "repair.share_min_keys is 1000000000, not 10000 or"),
    ({"repair": {"writes_per_minute": 10**9}}, "repair.writes_per_minute is 1000000000, not 20000"),
    ({"repair": {"attempts": 11}}, "repair.attempts is 11, not 10 or less"),
]


@pytest.mark.parametrize(("sections", "says"), DANGEROUS)
def test_a_dangerous_setting_is_refused_in_repair_mode(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        refuse_unsafe(settings(sections), Mode.REPAIR)
    assert str(refused.value).startswith("not in repair mode: ")
    assert says in str(refused.value)
    assert "repair.allow_unsafe_settings" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("sections", "says"), DANGEROUS)
def test_it_is_taken_by_an_observer_and_where_it_is_meant(
    sections: dict[str, Any], says: str
) -> None:
    refuse_unsafe(settings(sections), Mode.OBSERVE)
    meant = {**sections.get("repair", {}), "allow_unsafe_settings": True}
    refuse_unsafe(settings(sections | {"repair": meant}), Mode.REPAIR)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"stream": {"delay": 35}},
        {"tally": {"looks": 1, "projections": []}},
        {"stream": {"delay": 3600}, "tally": {"max_update_lag": 1}},
        {"tally": {"max_quota_lag": 60}},
        {"canary": {"usual_delay": 300, "lost_after": 3600, "longest_pause": 3600}},
        {"canary": {"lost_after": 300, "longest_pause": 1}},
        {"repair": {"empty_truth_min_rows": 100, "suspect_share": 0.5, "attempts": 10}},
        {"repair": {"empty_truth_min_rows": 1, "suspects_per_minute": 1, "suspect_share": 1e-9}},
        {"tally": {"correction_share": 1, "after_outage": 1, "projections": []}},
    ],
)
def test_what_is_safe_is_taken(sections: dict[str, Any]) -> None:
    refuse_unsafe(settings(sections), Mode.REPAIR)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"cassandra": {"own_keyspace": "apache_james"}}, "own_keyspace is that of cassandra.key"),
        ({"cassandra": {"own_keyspace": "reconciler_canary"}}, "own_keyspace is that of canary.k"),
        ({"canary": {"keyspace": "apache_james"}}, "canary.keyspace is that of James"),
        (
            {"kafka": {"suspects_topic": "james"}},
            "kafka.topic_prefix and kafka.suspects_topic name the same topic: james",
        ),
        (
            {"kafka": {"dead_letters_topic": "x", "observe_suspects_topic": "x"}},
            "kafka.observe_suspects_topic and kafka.dead_letters_topic name the same topic: x",
        ),
    ],
)
def test_equal_names_are_refused_in_any_mode(
    sections: dict[str, Any], says: str, mode: Mode
) -> None:
    meant = sections | {"repair": {"allow_unsafe_settings": True}}
    with pytest.raises(Misconfigured, match=says):
        refuse_unsafe(settings(meant), mode)


@pytest.mark.parametrize("setting", ["STREAM__DELAY", "REPAIR__RECHECK_INTERVAL"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_duration_is_a_finite_number(setting: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=f'RECONCILE_{setting} is "{value}", and must be'):
        load(None, {f"RECONCILE_{setting}": value})


def test_the_stream_refuses_before_it_opens_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE_STREAM__DELAY", "10")
    monkeypatch.setenv("RECONCILE_CASSANDRA__PORT", "1")
    assert app.main(["stream", "--mode", "repair"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("reconcile: not in repair mode: stream.delay is 10, not 35 s or more")


def test_the_bounds_stand_on_the_page_of_the_settings() -> None:
    """And each is of a setting whose default lies within."""
    rows = {line.split("|")[1].strip(" `"): line for line in page().splitlines() if "| `" in line}
    for each in GUARDED:
        assert f"in repair mode {each.allowed}" in rows[each.setting.partition(".")[2]]
        assert each.holds(settings({}))


def test_levels_do_not_follow_from_a_data_centre() -> None:
    near = settings({"cassandra": {"local_dc": "paris"}}).cassandra
    assert (near.consistency, near.serial_consistency) == ("QUORUM", "SERIAL")
    assert not near.levels_are_set
