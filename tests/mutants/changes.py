"""All mutants of a module: what is changed where in its syntax tree."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.mutants import operators
from tests.mutants.untouched import parts_of

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One fault: ``new`` instead of what ``owner`` has in a field (at an index, if it is a list).

    ``statement`` is the innermost one around it, ``function`` the qualified name of the function or
    class around it, empty in a module's own lines. ``at_import``: it runs when the module is
    imported, as a constant or a default does.
    """

    file: str
    function: str
    statement: ast.stmt
    line: int
    at_import: bool
    operator: str
    owner: ast.AST
    field: str
    index: int | None
    new: Any

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The tree with the fault in it, for the time of the context."""
        held = getattr(self.owner, self.field)
        if self.index is None:
            setattr(self.owner, self.field, self.new)
        else:
            setattr(
                self.owner, self.field, [*held[: self.index], self.new, *held[self.index + 1 :]]
            )
        try:
            yield
        finally:
            setattr(self.owner, self.field, held)

    def lines(self) -> tuple[int, int]:
        """The lines of its statement, without the body of a compound one."""
        first, last = self.statement.lineno, self.statement.end_lineno or self.statement.lineno
        body = getattr(self.statement, "body", None) or getattr(self.statement, "cases", None)
        if isinstance(body, list):
            inner = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            last = max(first, inner.lineno - 1)
        return min(first, self.line), max(last, self.line)

    def diff(self, tree: ast.Module) -> tuple[str, str]:
        """What a reader sees of it: the lines that differ, before and after, in one line each."""
        around = _around(tree, self.statement)
        before = ast.unparse(around)
        with self.applied():
            after = ast.unparse(around)
        lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
        gone, come = (
            " ⏎ ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )
        return gone, come


def _around(tree: ast.Module, statement: ast.stmt) -> ast.AST:
    """The statement's parent: the statement itself may be what is replaced."""
    for node in ast.walk(tree):
        if any(child is statement for child in ast.iter_child_nodes(node)):
            return node
    return tree


def mutants_of(file: str, tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    found: list[Mutant] = []
    _visit(_Place(file, "", statement=None, at_import=True), tree, found)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    file: str
    function: str
    statement: ast.stmt | None
    at_import: bool

    def inside(self, owner: ast.AST, field: str) -> _Place:
        """The place of what stands in this field of ``owner``."""
        statement = owner if isinstance(owner, ast.stmt) else self.statement
        if not isinstance(owner, Scope | ast.Lambda) or field != "body":
            return _Place(self.file, self.function, statement, self.at_import)
        runs_now = isinstance(owner, ast.ClassDef) and self.at_import
        name = self.function
        if isinstance(owner, Scope):
            name = f"{name}.{owner.name}" if name else owner.name
        return _Place(self.file, name, statement, runs_now)


def _visit(place: _Place, owner: ast.AST, found: list[Mutant]) -> None:
    for field, index, node in parts_of(owner):
        here = place.inside(owner, field)
        statement = node if isinstance(node, ast.stmt) else here.statement
        for change in operators.changes(owner, field, index, node):
            if change.in_functions_only and here.at_import:
                continue
            assert statement is not None
            line = getattr(node, "lineno", getattr(owner, "lineno", statement.lineno))
            found.append(
                Mutant(
                    file=place.file,
                    function=here.function,
                    statement=statement,
                    line=line,
                    at_import=here.at_import,
                    operator=change.operator,
                    owner=change.owner,
                    field=change.field,
                    index=change.index,
                    new=change.new,
                )
            )
        _visit(here, node, found)
