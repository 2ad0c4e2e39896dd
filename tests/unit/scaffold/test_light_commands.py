"""Commands that only look or decide import no Spark: a cron job asks `status` every minute."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_SPARK = (
    "look.status",
    "look.explain",
    "look.report",
    "person.findings",
    "person.undo",
    "person.pause",
    "person.pilot",
    "doctor.command",
    "running.canary",
)
ASKED = """
import sys
from importlib import import_module
import_module("streaming.commands.{}")
print("pyspark" in sys.modules)
"""


@pytest.mark.parametrize("command", WITHOUT_SPARK)
def test_it_imports_no_spark(command: str) -> None:
    asked = [sys.executable, "-c", ASKED.format(command)]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
