"""Settings under which a stream does not write: one line that names the setting and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.words.errors import Misconfigured
from streaming import app
from streaming.settings import Mode, Settings, load, refuse_unsafe


def settings(sections: dict[str, Any]) -> Settings:
    return Settings.model_validate(sections)


DANGEROUS: list[tuple[dict[str, Any], str]] = [
    ({"stream": {"delay": 34.9}}, "stream.delay is 34.9 s, and James retries a write for up to 31"),
    ({"cassandra": {"request_timeout": 46}}, "cassandra.request_timeout is 46 s, longer than"),
    ({"tally": {"looks": 1}}, "tally.looks is 1: one look cannot tell"),
    ({"tally": {"max_update_lag": 0.5}}, "tally.max_update_lag is 0.5 s"),
    ({"tally": {"max_quota_lag": 59}}, "tally.max_quota_lag is 59 s: a backlog of James"),
]


@pytest.mark.parametrize(("sections", "says"), DANGEROUS)
def test_a_dangerous_setting_is_refused_in_repair_mode(sections: dict[str, Any], says: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        refuse_unsafe(settings(sections), Mode.REPAIR)
    assert f"not in repair mode: {says}" in str(refused.value)
    assert "repair.allow_unsafe_settings" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("sections", "says"), DANGEROUS)
def test_it_is_taken_by_an_observer_and_where_it_is_meant(
    sections: dict[str, Any], says: str
) -> None:
    refuse_unsafe(settings(sections), Mode.OBSERVE)
    refuse_unsafe(settings(sections | {"repair": {"allow_unsafe_settings": True}}), Mode.REPAIR)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"stream": {"delay": 35}},
        {"tally": {"looks": 1, "projections": []}},
        {"stream": {"delay": 3600}, "tally": {"max_update_lag": 1}},
        {"tally": {"max_quota_lag": 60}},
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
    section, name = setting.lower().split("__")
    with pytest.raises(Misconfigured, match=f"{section}.{name}"):
        load(None, {f"RECONCILE_{setting}": value})


def test_the_stream_refuses_before_it_opens_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE_STREAM__DELAY", "10")
    monkeypatch.setenv("RECONCILE_CASSANDRA__PORT", "1")
    assert app.main(["stream", "--mode", "repair"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("reconcile: not in repair mode: stream.delay is 10 s")


def test_levels_do_not_follow_from_a_data_centre() -> None:
    near = settings({"cassandra": {"local_dc": "paris"}}).cassandra
    assert (near.consistency, near.serial_consistency) == ("QUORUM", "SERIAL")
    assert not near.levels_are_set
