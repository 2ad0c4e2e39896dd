"""One fault-injection run of ten minutes on three nodes; docs/nemesis.md has the longer ones."""

from pathlib import Path

import pytest

from deploy.embedded.spec import CassandraRelease
from deploy.nemesis.run import RunPlan, play

pytestmark = [pytest.mark.stack, pytest.mark.long(part="nemesis")]

FEWEST_FAULTS = 5


def test_users_lose_nothing_and_all_tables_agree(release: CassandraRelease, tmp_path: Path) -> None:
    plan = RunPlan(seed=11, minutes=10.0, release=release, rate=10.0)
    record, judgement = play(plan, tmp_path)
    assert judgement.violations == []
    assert record.passed
    assert record.operations > 0
    assert sum(record.faults.values()) >= FEWEST_FAULTS
