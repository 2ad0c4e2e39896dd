"""What `status` says of sweeps, and since when every row has been compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from checkpoints.sweeps import AHEAD, SweepRecord, SweptRange
from reconcilers.declared.families.message import MESSAGE
from streaming.again.last_sweep import NOT_SWEPT, compared_since, last_sweep
from streaming.commands.look import status
from streaming.settings import Settings, SweepSettings
from tests.fakes.checkpoints.sweeps import MemorySweeps

AT, HOUR = 1_800_000_000_000_000, 3_600_000_000
SYSTEMS = ("messages", "deleted_uids")
FIRST = SweepRecord(AT, "alice", "", SYSTEMS, 8)
SECOND = replace(FIRST, began_at=AT + HOUR, who="bob")


def kept(*ended: SweepRecord, running: SweepRecord | None = None) -> MemorySweeps:
    sweeps = MemorySweeps()
    for each in ended:
        sweeps.begin(each)
        sweeps.end(each, each.began_at + 9_000_000, "5 rows")
    if running is not None:
        sweeps.begin(running)
        sweeps.swept(running, {("messageidtable" + AHEAD, 0): SweptRange(0, 0)})
        sweeps.swept(running, {("imapuidtable", 3): SweptRange(5, 0, 4)})
    return sweeps


def test_without_a_sweep_it_says_what_is_not_known() -> None:
    assert last_sweep(kept(), SYSTEMS) == NOT_SWEPT


def test_one_that_has_ended_is_told_with_its_outcome() -> None:
    assert last_sweep(kept(FIRST), SYSTEMS) == "last swept 2027-01-15T08:00:09+00:00: 5 rows"


def test_under_the_first_the_other_ranges_were_never_compared() -> None:
    told = last_sweep(kept(running=FIRST), SYSTEMS)
    assert "by alice has read 4 ranges and has not ended; the others were never compared" in told
    assert "reconcile sweep --resume" in told


def test_one_that_waits_for_its_hours_says_so() -> None:
    waits = "until 01:00 local time (sweep.between)"
    told = last_sweep(kept(running=FIRST), SYSTEMS, waits)
    assert f"has read 4 ranges, waits {waits}, and has not ended" in told
    assert "waits" not in last_sweep(kept(FIRST), SYSTEMS, waits), "it has ended"


@pytest.mark.parametrize(("hour", "waits"), [(0, True), (2, False)])
def test_status_says_whether_it_waits(
    monkeypatch: pytest.MonkeyPatch, hour: int, waits: bool
) -> None:
    now = datetime(2026, 11, 28, hour, tzinfo=UTC)
    monkeypatch.setattr(status, "local_time", lambda: now)
    settings = Settings(sweep=SweepSettings(between="01:00-05:00"))
    (told,) = status._told_sweeps(settings, kept(running=FIRST), [MESSAGE]).values()
    assert ("waits until 01:00" in told) is waits


def test_under_another_they_were_compared_by_the_one_before() -> None:
    told = last_sweep(kept(FIRST, running=SECOND), SYSTEMS)
    assert "the others were last compared after 2027-01-15T08:00:00+00:00" in told


def test_a_sweep_of_some_systems_compares_not_every_row() -> None:
    some = replace(SECOND, systems=("messages",))
    assert last_sweep(kept(some), SYSTEMS).endswith("; not every row was ever compared")
    told = last_sweep(kept(FIRST, some), SYSTEMS)
    assert told.endswith("; every row was last compared after 2027-01-15T08:00:00+00:00")
    assert last_sweep(kept(some), ("messages",)).endswith(": 5 rows")


def test_every_row_was_compared_since_the_newest_that_ended_began() -> None:
    sweeps = kept(FIRST, replace(FIRST, began_at=AT + 1), running=SECOND).all()
    assert compared_since(sweeps, SYSTEMS) == AT + 1
    assert compared_since(sweeps, (*SYSTEMS, "recent_uids")) is None


def test_a_sweep_of_another_family_tells_nothing_of_this_one() -> None:
    rights = replace(SECOND, systems=("user_rights",))
    assert last_sweep(kept(rights), SYSTEMS) == NOT_SWEPT
    assert last_sweep(kept(FIRST, running=rights), SYSTEMS).endswith(": 5 rows")
    assert "has read 4 ranges" in last_sweep(kept(FIRST, running=rights), rights.systems)
