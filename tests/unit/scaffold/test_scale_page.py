"""docs/scale.md names settings that the product takes, and measurements that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streaming.settings import Mode, Settings
from streaming.settings.unsafe import refuse_unsafe

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
SIZES = ("3 nodes", "20 nodes", "100 nodes")
SETTING = re.compile(r'`"?([a-z]+)\.([A-Za-z._]+)"?`')


def lines() -> list[list[str]]:
    """The cells of each line of a table that begins with a setting."""
    rows = ([each.strip() for each in line.split("|")[1:-1]] for line in PAGE.splitlines())
    return [cells for cells in rows if cells and SETTING.fullmatch(cells[0])]


def settings_of(size: str) -> Settings:
    """What the page says for an installation of this size."""
    sections: dict[str, dict[str, Any]] = {}
    for first, *values in lines():
        found = SETTING.fullmatch(first)
        assert found is not None
        value = values[SIZES.index(size)]
        section, name = found.groups()
        name = first.strip('`"') if section == "spark" else name
        if re.fullmatch(r"[\d,.]+|`.*`", value):
            sections.setdefault(section, {})[name] = value.strip("`").replace(",", "")
    return Settings.model_validate(sections)


@pytest.mark.parametrize("size", SIZES)
def test_a_stream_takes_what_is_set_for_each_size(size: str) -> None:
    settings = settings_of(size)
    refuse_unsafe(settings, Mode.REPAIR)
    assert settings.repair.suspects_per_minute in {1_000, 2_000, 9_000}
    assert bool(settings.spark) is (size != SIZES[0])


def test_each_measurement_is_a_section_of_the_benchmarks() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (.*)$", text, re.MULTILINE))
    named = re.findall(r"(?<=[(\s])\*([A-Z][^*]+)\*(?=[),\s])", " ".join(PAGE.split()))
    assert len(named) > 8
    assert set(named) <= sections
