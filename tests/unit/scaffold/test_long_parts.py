"""`make test-long` can be run in parts: each long test is in exactly one of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def made() -> list[str]:
    """The parts that make knows."""
    (listed,) = re.findall(r"^LONG_PARTS\s*:=\s*(.*)$", MAKEFILE, re.MULTILINE)
    return str(listed).split()


def long_marks(node: ast.AST) -> list[ast.expr]:
    """Every `pytest.mark.long` below, with its call if it is called."""
    called = {
        id(each.func): each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.long"
    }
    return [
        called.get(id(each), each)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and ast.unparse(each) == "pytest.mark.long"
    ]


def part_of(mark: ast.expr) -> str | None:
    """The part that a mark names, if it names one as it must."""
    match mark:
        case ast.Call(args=[], keywords=[ast.keyword(arg="part", value=ast.Constant(str(part)))]):
            return part
    return None


def marked(tree: ast.Module) -> Iterator[tuple[str, list[str | None]]]:
    """Each place of a file that is marked, with its parts: the whole file, or a function."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    whole = [
        part_of(mark)
        for each in tree.body
        if not isinstance(each, definitions)
        for mark in long_marks(each)
    ]
    if whole:
        yield "the whole file", whole
    for each in tree.body:
        if isinstance(each, definitions) and (own := [part_of(m) for m in long_marks(each)]):
            yield each.name, [*whole, *own]


def all_marked() -> dict[str, list[str | None]]:
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.long" in text:
            for place, parts in marked(ast.parse(text)):
                found[f"{path.relative_to(ROOT)}: {place}"] = parts
    return found


def test_each_long_test_is_in_exactly_one_part() -> None:
    wrong = {
        place: parts
        for place, parts in all_marked().items()
        if len(parts) != 1 or parts[0] not in made()
    }
    assert not wrong, f"say @pytest.mark.long(part=...), one of {', '.join(made())}"


def test_each_part_has_tests_and_a_line_in_the_help() -> None:
    used = {part for parts in all_marked().values() for part in parts}
    assert used == set(made())
    assert re.findall(r"^test-long-([a-z-]+): ## ", MAKEFILE, re.MULTILINE) == made()


def test_what_runs_on_the_older_cassandra_is_there() -> None:
    ((named, others),) = re.findall(r"^OLDER := .*,(.*)\) \\\n(.*)$", MAKEFILE, re.MULTILINE)
    paths = [f"tests/stack/test_{each}.py" for each in named.split()] + others.split()
    assert len(paths) > len(others.split())
    for each in paths:
        assert (ROOT / each).is_file()


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("@pytest.mark.long\ndef test_a(): ...", {"test_a": [None]}),
        ("@pytest.mark.long(part='a')\ndef test_a(): ...", {"test_a": ["a"]}),
        ("@pytest.mark.long('a')\ndef test_a(): ...", {"test_a": [None]}),
        (
            "@pytest.mark.long(part='a')\n@pytest.mark.long(part='b')\ndef test_a(): ...",
            {"test_a": ["a", "b"]},
        ),
        (
            "pytestmark = [pytest.mark.stack, pytest.mark.long(part='a')]\n"
            "@pytest.mark.long(part='b')\ndef test_a(): ...",
            {"the whole file": ["a"], "test_a": ["a", "b"]},
        ),
        (
            "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.long)])\n"
            "def test_a(x): ...",
            {"test_a": [None]},
        ),
        ("@pytest.mark.stack\ndef test_a(): ...", {}),
    ],
)
def test_a_mark_is_found(source: str, parts: dict[str, list[str | None]]) -> None:
    assert {
        place: sorted(p or "" for p in found) for place, found in marked(ast.parse(source))
    } == {place: sorted(p or "" for p in found) for place, found in parts.items()}
