"""ARCHITECTURE.md shows three tables of the code; each is the one in its module's docstring."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from reconcilers.declared.projections import messages
from reconcilers.rows import glance, plan

PAGE = Path(__file__).resolve().parents[2] / "ARCHITECTURE.md"
RULE = re.compile(r"=+(  +=+)+")
SHOWN = pytest.mark.parametrize(
    "module", [messages, plan, glance], ids=["the rule of S1", "the guards", "the glance"]
)

Row = tuple[str, ...]
Table = list[Row]


def plain(cell: str) -> str:
    """The words of a cell, without markup and with single spaces."""
    return " ".join(cell.replace("`", "").replace("*", "").split())


def docstring_table(docstring: str) -> Table:
    """The one simple table of a docstring. A line with an empty first cell goes on with its row."""
    lines = docstring.splitlines()
    top, head, bottom = [number for number, line in enumerate(lines) if RULE.fullmatch(line)]
    starts = [rule.start() for rule in re.finditer("=+", lines[top])]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in (*lines[top + 1 : head], *lines[head + 1 : bottom]):
        cells = [line[start:end] for start, end in zip(starts, ends, strict=True)]
        if rows and not cells[0].strip():
            rows[-1] = [" ".join(pair) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return [tuple(plain(cell) for cell in row) for row in rows]


def page_tables(page: str) -> list[Table]:
    """Every Markdown table of a page, its header first."""
    return [
        [
            tuple(plain(cell) for cell in line.strip().strip("|").split("|"))
            for number, line in enumerate(block.splitlines())
            if number != 1  # the line of dashes
        ]
        for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    ]


def differences(docstring: str, page: str) -> list[str]:
    """What the page shows otherwise than the docstring says, row by row."""
    wanted = docstring_table(docstring)
    found = next((table for table in page_tables(page) if table[0] == wanted[0]), None)
    if found is None:
        return [f"no table with the header {wanted[0]}"]
    missing = [f"not on the page: {row}" for row in wanted if row not in found]
    extra = [f"only on the page: {row}" for row in found if row not in wanted]
    return missing + extra or ([] if wanted == found else ["the rows stand in another order"])


def as_page(header: Row, *rows: Row) -> str:
    """A page with this table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ("---",), *rows))


@SHOWN
def test_the_page_shows_the_table_of_the_code(module: ModuleType) -> None:
    found = differences(module.__doc__ or "", PAGE.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(found)


@SHOWN
def test_a_changed_word_is_noticed_on_either_side(module: ModuleType) -> None:
    docstring = module.__doc__ or ""
    table = docstring_table(docstring)
    page = as_page(*table)
    assert not differences(docstring, page)
    words = {word for row in table for cell in row for word in cell.split() if len(word) > 3}
    assert len(words) > 20
    for word in words:
        assert differences(docstring.replace(word, "x" * len(word)), page), word
        assert differences(docstring, page.replace(word, "x")), word


@SHOWN
def test_a_row_that_is_left_out_moved_or_added_is_noticed(module: ModuleType) -> None:
    docstring = module.__doc__ or ""
    header, *rows = docstring_table(docstring)
    assert differences(docstring, as_page(header, *rows[1:]))
    assert differences(docstring, as_page(header, *rows[1:], rows[0]))
    assert differences(docstring, as_page(header, *rows, ("one", "row", "more")))
    assert differences(docstring, "no table at all")
