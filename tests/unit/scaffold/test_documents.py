"""The documents show three tables of the code, and are short; every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from reconcilers.declared.projections import messages
from reconcilers.rows import glance, plan

ROOT = Path(__file__).resolve().parents[3]
PAGES = {messages: "docs/rows.md", plan: "docs/rows.md", glance: "docs/capture.md"}
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
    found = differences(module.__doc__ or "", (ROOT / PAGES[module]).read_text(encoding="utf-8"))
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


# --- the pages themselves -------------------------------------------------------------------------

FREE = {"benchmarks", "scenarios", "settings", "counters-or-rows"}
"""Generated pages, and the studies."""
LIMITS = {"README.md": 700, "ARCHITECTURE.md": 2_200} | {
    path.relative_to(ROOT).as_posix(): 1_500
    for path in (ROOT / "docs").glob("*.md")
    if path.stem not in FREE
}


@pytest.mark.parametrize("page", LIMITS)
def test_a_page_is_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= LIMITS[page]


def slug(heading: str) -> str:
    """The anchor that Markdown makes of a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words.strip()).replace(" ", "-")


def dead_links(page: Path) -> list[str]:
    """The relative links of a page that lead to no file, or to no heading of one."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith("http"):
            continue
        if not target.exists():
            found.append(link)
        elif anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            found += [link] if anchor not in map(slug, headings) else []
    return found


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `Heading` of it\n[a](#a-heading-of-it) [b](#none) [c](c.md) [d](page.md#x)"
    )
    assert dead_links(page) == ["#none", "c.md", "page.md#x"]


def test_every_section_of_the_runbook_that_is_named_is_there() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "deploy" / "runbook.md").read_text("utf-8"), re.M)
    rooms = [ROOT / each for each in ("checkpoints", "deploy", "docs", "reconcilers", "streaming")]
    pages = [
        path for room in rooms for end in ("py", "md", "yml") for path in room.rglob(f"*.{end}")
    ]
    named = {
        " ".join(name.split())
        for page in pages
        for name in re.findall(r"runbook\.md,[\s\"]*\*([^*]+)\*", page.read_text("utf-8"))
    }
    assert len(named) > 4
    assert named <= set(headings)


def missing_tests(page: str) -> list[str]:
    """The test files that a page names and that are nowhere below ``tests``."""
    named = re.findall(r"(tests/[\w/]+/)?(test_\w+\.py)", page)
    return [
        folder + name
        for folder, name in named
        if not (
            any((ROOT / "tests").rglob(name)) if not folder else (ROOT / folder / name).exists()
        )
    ]


def test_every_test_file_that_a_page_names_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "deploy" / "runbook.md"]
    named = {page.name: missing_tests(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: tests for page, tests in named.items() if tests} == {}
    assert missing_tests("`tests/unit/test_none.py`, `test_none.py`, `test_documents.py`") == [
        "tests/unit/test_none.py",
        "test_none.py",
    ]
