"""Small programs in a process of their own: a Spark that is started, or ends, as the product's."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_script(text: str, argument: Path) -> subprocess.CompletedProcess[str]:
    """What a program printed that imports the project, and takes this as its only argument."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), str(argument)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
