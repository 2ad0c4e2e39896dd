"""docs/benchmarks.md: one section a benchmark, each rewritten by the run that measured it."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PAGE = Path("docs/benchmarks.md")
CHANGES_OF_THE_PAGE = (200_000, 600_000)
"""How many changes (`BENCH_CHANGES`) the page has sections for; the first where nothing is said."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; numbers to the right."""
    texts = [[_text(value) for value in row] for row in rows]
    widths = [
        max(len(row[place]) for row in [list(header), *texts]) for place in range(len(header))
    ]
    numeric = [
        all(isinstance(row[place], int | float) for row in rows) for place in range(len(header))
    ]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 1) + (":" if right else "-")
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([line(header), f"|{rule}|", *map(line, texts)])


def is_quick() -> bool:
    """Whether this is a quick try (another `BENCH_CHANGES`), of which no page tells."""
    changes = int(os.environ.get("BENCH_CHANGES", CHANGES_OF_THE_PAGE[0]))
    return changes not in CHANGES_OF_THE_PAGE


def publish(title: str, *parts: str, page: Path = PAGE) -> None:
    """Print a section, and put it into the page in place of the one of that title.

    A quick try is only printed.
    """
    text = "\n\n".join([f"## {title}", f"Measured {_machine()}.", *parts])
    print(f"\n{text}\n")
    if is_quick():
        return
    whole = page.read_text(encoding="utf-8") if page.exists() else "# Benchmarks\n"
    section = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if section.search(whole):
        whole = section.sub(lambda _: f"{text}\n\n", whole)
    else:
        whole = f"{whole.rstrip()}\n\n{text}\n"
    page.write_text(f"{whole.rstrip()}\n", encoding="utf-8")


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    used = ", ".join(
        f"{name} {version(package)}"
        for name, package in (("Spark", "pyspark"), ("driver", "cassandra-driver"))
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" load {os.getloadavg()[0]:.1f} at its end; Python {platform.python_version()}, {used}"
    )


def _text(value: object) -> str:
    match value:
        case float() if abs(value) < 100:
            return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
        case int() | float():
            return f"{value:,.0f}"
    return str(value)
