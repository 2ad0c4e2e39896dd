"""The faults that `make mutants` plants: what is changed, what is left alone, what is told."""

import ast
import importlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.mutants.changes import Mutant, mutants_of, shortened
from tests.mutants.reach import Reach
from tests.mutants.report import Run, over_the_bar, reasons, table
from tests.mutants.scope import PARTS, files_of, left_out
from tests.mutants.session import MutantFinder, ended_with, forked, module_name
from tests.mutants.trial import Outcome, Result

ROOT = Path(__file__).resolve().parents[3]


def becomes(source: str) -> list[str]:
    """The source as each of its mutants reads."""
    tree = ast.parse(source)
    found = []
    for mutant in mutants_of("some.py", tree):
        with mutant.applied():
            found.append(ast.unparse(tree))
    assert ast.unparse(tree) == ast.unparse(ast.parse(source))
    return found


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a >= b", ["a > b", "a < b"]),
        ("a is b", ["a is not b"]),
        ("a not in b", ["a in b"]),
        ("a and b", ["a or b", "b", "a"]),
        ("a or b or c", ["a and b and c", "b or c", "a or c", "a or b"]),
        ("not a", ["a"]),
        ("a + b", ["a - b"]),
        ("a - b", ["a + b", "a"]),
        ("a | b", ["a & b", "a", "b"]),
        ("a // b", ["a * b"]),
        ("7", ["8", "6"]),
        ("True", ["False"]),
        ("'state'", ["'XXstate'"]),
        ("min(a)", ["max(a)"]),
        ("any(a)", ["all(a)"]),
        ("sorted(a, key=b)", ["list(a)", "sorted(a)"]),
        ("replace(a, b=c, d=e)", ["replace(a, d=e)", "replace(a, b=c)"]),
        ("f(a, b)", ["f(b, a)"]),
        ("d.get(a, b)", ["d.get(a)", "d.get(b, a)"]),
        ("a[b:c]", ["a[:c]", "a[b:]"]),
        ("a if b else c", ["a if not b else c"]),
        ("[a for a in b if c]", ["[a for a in b]"]),
    ],
)
def test_what_stands_instead_of_an_expression(source: str, mutants: list[str]) -> None:
    assert [text.removeprefix("x = ") for text in becomes(f"x = {source}")] == mutants


@pytest.mark.parametrize(
    ("body", "mutants"),
    [
        ("f()", ["pass"]),
        ("x += y", ["x -= y", "pass"]),
        ("return x", ["return None"]),
        ("x = y", ["x = None"]),
        ("raise Refused('no ' + text)", ["pass"]),
        ("yield x", ["if False:\n    yield"]),
        ("while x:\n    continue", ["while not x:\n    continue", "while x:\n    break"]),
        ("try:\n    x\nexcept E:\n    y", ["try:\n    x\nexcept E:\n    raise"]),
        (
            "match x:\n    case A() if y:\n        z\n    case B():\n        z",
            [
                "match x:\n\n    case B():\n        z",
                "match x:\n\n    case A() if y:\n        z",
                "match x:\n\n    case A():\n        z\n\n    case B():\n        z",
            ],
        ),
    ],
)
def test_what_stands_instead_of_a_statement(body: str, mutants: list[str]) -> None:
    lines = body.splitlines()
    source = "\n".join(["def f():", *(f"    {line}" for line in lines)])
    inside = [text.splitlines()[1:] for text in becomes(source)]
    found = ["\n".join(line.removeprefix("    ") for line in lines) for lines in inside]
    assert found == [text.replace("\n\n", "\n") for text in mutants]


@pytest.mark.parametrize(
    "source",
    [
        "'What it does.'",
        "def f(x: int | None) -> Literal['a']: ...",
        "x: Final[int | None]",
        "Place = tuple[str, Slot]",
        "Write = AddRow | DeleteRow",
        "T = TypeVar('T', bound='int')",
        "__all__ = ['f']",
        "if TYPE_CHECKING:\n    x = 1",
        "log.info('%d rows', x + 1)",
        "self._logger.warning('x', y)",
        "assert x > 1",
        "@dataclass(frozen=True, slots=True)\nclass A: ...",
        "x = 'a sentence for people'",
        "x = isinstance(y, int | str)",
        "class A(namedtuple('A', 'x')): ...",
        "x: list[A] = field(repr=False)",
        "class A(B, Protocol):\n    def f(self, x: int = 1) -> int: ...",
    ],
)
def test_what_is_left_alone(source: str) -> None:
    assert becomes(source) == []


def test_what_a_sentence_says_is_mutated_its_words_are_not() -> None:
    assert becomes("x = f'{a + b} rows'") == ["x = f'{a - b} rows'"]


def planted(source: str) -> list[Mutant]:
    return mutants_of("some.py", ast.parse(source))


def test_a_mutant_knows_where_it_is() -> None:
    source = (
        "X = 1\nclass A:\n    y = 2\n    def f(self, z=3):\n        return g(\n            4)\n"
    )
    places = [(each.place.function, each.place.at_import, each.lines()) for each in planted(source)]
    assert list(dict.fromkeys(places)) == [
        ("", True, (1, 1)),
        ("A", True, (3, 3)),
        ("A", True, (4, 4)),
        ("A.f", False, (5, 6)),
    ]


def test_a_condition_is_reached_by_its_own_lines_and_not_by_its_body() -> None:
    found = planted("def f():\n    if a < b:\n        g()\n        h()\n")
    assert {each.lines() for each in found if each.change.operator == "comparison"} == {(2, 2)}
    dropped = {each.lines() for each in found if each.change.operator == "statement dropped"}
    assert dropped == {(3, 3), (4, 4)}


def test_a_mutant_is_shown_by_what_differs() -> None:
    tree = ast.parse("def f():\n    if a < b:\n        return 1\n")
    first = mutants_of("some.py", tree)[0]
    assert first.diff() == ("if a < b:", "if a <= b:")


def test_a_long_line_is_cut_to_what_differs() -> None:
    was, changed = shortened(f"{'x' * 200} a < b {'y' * 200}", f"{'x' * 200} a <= b {'y' * 200}")
    assert was == f"… {'x' * 26} a < b {'y' * 27} …"
    assert changed == f"… {'x' * 26} a <= b {'y' * 27} …"


def test_a_mutant_is_imported_instead_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "planted_here.py"
    file.write_text("def f(a, b):\n    return a < b\n")
    tree = ast.parse(file.read_text())
    faults = mutants_of(file.name, tree)
    boundary = next(each for each in faults if each.change.operator == "comparison")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = module_name(file.name)
    finder = MutantFinder(module, file, boundary.code())
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    try:
        assert importlib.import_module(module).f(1, 1) is True
    finally:
        sys.modules.pop(module, None)


def test_tests_that_run_the_statement_come_first_and_the_fastest_of_them() -> None:
    found = planted("X = 1\ndef f():\n    return g()\n")
    reach = Reach(
        {"slow": 0.9, "quick": 0.1, "beside": 0.01, "beyond": 0.02, "anybody's": 0, "minutes": 60},
        {
            "some.py": {3: frozenset({"slow", "quick", ""}), 9: frozenset({"beside", "minutes"})},
            "other.py": {1: frozenset({"beyond", "quick"})},
        },
        {"some.py": frozenset({"other.py"})},
    )
    constant = next(each for each in found if each.place.at_import)
    returned = next(each for each in found if not each.place.at_import)
    assert reach.tests_of(returned) == [["quick", "slow"], ["beside"]]
    assert reach.tests_of(constant) == [["beside", "quick", "slow"], ["beyond"], ["anybody's"]]


def test_children_are_ended_when_the_run_is_interrupted() -> None:
    child = forked(lambda: signal.sigwait({signal.SIGUSR1}))
    with pytest.raises(KeyboardInterrupt), ended_with({child}):
        raise KeyboardInterrupt
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def a_run(*outcomes: Outcome) -> Run:
    results = [
        Result("reconcilers/x.py", "f", at, "comparison", "a < b", f"a <= {at}", outcome, "t")
        for at, outcome in enumerate(outcomes)
    ]
    return Run(10, {"reconcilers": 50, "checkpoints": 7}, results)


def test_the_table_counts_and_explains() -> None:
    run = a_run(Outcome.KILLED, Outcome.TIMED_OUT, Outcome.SURVIVED, Outcome.UNREACHED)
    written = table(run, {("reconcilers/x.py", "f", "a < b", "a <= 2"): "Both are the same."})
    assert "| reconcilers, at most 3% | 50 | 4 | 1 | 1 | 2 | 50.0% |" in written
    assert "| checkpoints, at most 3% | 7 | 0 | 0 | 0 | 0 | – |" in written
    assert "Both are the same." in written
    assert "(no test reaches it)" in written
    assert written.count("**Not explained yet.**") == 1


def test_a_part_is_over_its_bar_when_more_than_that_share_lives() -> None:
    killed = [Outcome.KILLED] * 97
    assert over_the_bar(a_run(*killed, *[Outcome.SURVIVED] * 3)) == []
    assert over_the_bar(a_run(*killed[1:], *[Outcome.SURVIVED] * 4)) == [
        "reconcilers: 4.0% survive, at most 3% may"
    ]


def test_a_run_is_kept_whole() -> None:
    run = a_run(Outcome.KILLED, Outcome.SURVIVED)
    assert Run.from_json(run.to_json()) == run


def test_every_pattern_of_the_scope_means_a_file() -> None:
    for part in PARTS:
        for pattern in (*part.files, *part.without):
            assert list(ROOT.glob(pattern)), pattern


def test_every_function_left_out_is_there() -> None:
    for part in PARTS:
        for file, function in part.functions:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            names = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
            assert function.rpartition(".")[2] in names, (file, function)


def test_a_function_left_out_takes_with_it_what_is_in_it() -> None:
    part = PARTS[-1]
    file, function = part.functions[0]
    assert left_out(part, file, f"{function}.inner")
    assert not left_out(part, file, f"{function}_else")


def test_every_reason_is_for_a_mutant_that_there_is() -> None:
    in_scope = {file for part in PARTS for file in files_of(part, ROOT)}
    there = {
        mutant.key()
        for file in in_scope & {file for file, *_ in reasons()}
        for mutant in mutants_of(file, ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if (file, mutant.place.function) in {(file, function) for file, function, *_ in reasons()}
    }
    assert reasons().keys() - there == set(), (
        "tests/mutants/accepted.toml quotes lines that changed"
    )
