"""A folder for the path of a process that is to die at a chosen point; see sitecustomize.py."""

import os
from pathlib import Path


def sabotage(point: str, done: Path) -> dict[str, str]:
    """The environment of a process that is to die at this point."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "SABOTAGE": point, "SABOTAGE_DONE": str(done)}
