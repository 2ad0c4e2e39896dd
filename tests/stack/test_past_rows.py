"""Orphans of the past: a sweep leaves them with one finding, and a person accepts them together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.stack.conftest import LATEST, Scenes
from tests.stack.pasts import QUIET, places
from tests.stack.scenes import Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

A_MINUTE = 12
"""Removals; of more rows one finding tells."""
ORPHANS = places(A_MINUTE + 2)
LONG_AGO = 3_600_000_000
"""µs: every event of a row so old would have come, if the row were newer than all captured."""


@pytest.fixture(scope="module")
def scene(scenes: Scenes, mail_keyspace: str) -> Iterator[Scene]:
    changes: dict[str, Mapping[str, Any]] = {
        "stream": {"delay": LATEST},
        "repair": {
            "projections": ["messages"],
            "recheck_interval": 600,
            "removals_per_minute": A_MINUTE,
        },
        "sweep": {"ranges": 8},
    }
    yield from scenes.over(with_orphans, changes)


def with_orphans(scene: Scene) -> Scene:
    for place in ORPHANS:
        row = {"messageid": place.messageid, **cells(**QUIET)}
        scene.write_projection(place, row, now_us() - LONG_AGO)
    return scene


def findings(scene: Scene, *words: str) -> list[dict[str, Any]]:
    listed = scene.command("findings", *words, "--format", "jsonl").stdout
    return [json.loads(line) for line in listed.splitlines()]


def key_of(finding: Mapping[str, Any]) -> str:
    return f"{finding['mailboxid']}/{finding['uid']}"


def left(scene: Scene) -> list[Place]:
    return [place for place in ORPHANS if not scene.lacks(place.row)]


def test_a_sweep_leaves_them_with_one_finding(scene: Scene) -> None:
    swept = scene.succeed("sweep", "--reason", "the first")
    assert f"rows of the past, ambiguous_range_delete: {len(ORPHANS)} left" in swept.stdout
    (found,) = findings(scene)
    assert (found["kind"], found["state"]) == ("past_rows", "reported")
    assert f"lacks {len(ORPHANS)} rows of {len(ORPHANS)} mailboxes" in found["sentence"]
    assert left(scene) == ORPHANS
    until(
        "the metric shows it",
        lambda: scene.metric("reconciler_open_findings", kind="past_rows") == 1,
    )


def test_its_rows_are_listed(scene: Scene) -> None:
    (found,) = findings(scene)
    members = findings(scene, "--members", key_of(found))
    assert {(each["mailboxid"], each["uid"]) for each in members} == {
        (str(place.mailboxid), place.uid) for place in ORPHANS
    }
    assert not any(each["accepted"] for each in members)


def test_one_that_gets_evidence_is_removed_by_that(scene: Scene) -> None:
    scene.delete_truth(ORPHANS[0])
    until("it is gone", partial(scene.lacks, ORPHANS[0].row))
    assert left(scene) == ORPHANS[1:]


def test_once_accepted_they_are_handed_over_by_the_next_sweep_and_removed(scene: Scene) -> None:
    (found,) = [each for each in findings(scene) if each["kind"] == "past_rows"]
    accepted = scene.succeed("findings", "--accept", key_of(found), "--system", "messages")
    assert "by the next sweep" in accepted.stdout
    swept = scene.succeed("sweep", "--reason", "they may go")
    assert f"{len(ORPHANS) - 1} accepted, and handed over" in swept.stdout
    until("all are gone", lambda: not left(scene))
    scene.succeed("sweep", "--reason", "is anything left")
    until("no finding is left", lambda: not findings(scene))
