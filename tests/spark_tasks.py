"""Tasks for tests of Spark; workers import this file, and may have no more than PySpark."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path


def held(names: Iterable[str]) -> Iterator[str]:
    """Names of files, each once its file is gone."""
    for name in names:
        while Path(name).exists():
            time.sleep(0.01)
        yield name
