"""What tests of stores share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the jars of Spark's Kafka connector: no environment need have them."""
    (tmp_path / "connector.jar").touch()
    monkeypatch.setenv("RECONCILE_STREAM__JARS", str(tmp_path))
