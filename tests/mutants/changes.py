"""All mutants of a module: what is changed where in its syntax tree."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from types import CodeType

from tests.mutants import operators
from tests.mutants.untouched import parts_of

SHOWN = 100
"""Characters; a longer line is cut to what differs …"""
CONTEXT = 30
"""… and so many characters before and after it."""

Key = tuple[str, str, str, str]
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is. ``function`` is the qualified name of the function or class around it.

    ``statement`` is the innermost one around it. ``at_import``: it runs when the module is
    imported, as a constant or a default does.
    """

    file: str
    tree: ast.Module
    function: str = ""
    statement: ast.stmt | None = None
    at_import: bool = True

    def inside(self, owner: ast.AST, field: str) -> Place:
        """The place of what stands in this field of ``owner``."""
        here = replace(self, statement=owner) if isinstance(owner, ast.stmt) else self
        if not isinstance(owner, Scope | ast.Lambda) or field != "body":
            return here
        here = replace(here, at_import=isinstance(owner, ast.ClassDef) and self.at_import)
        if isinstance(owner, ast.Lambda):
            return here
        return replace(here, function=f"{self.function}.{owner.name}".lstrip("."))


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One fault: a change in a statement."""

    place: Place
    statement: ast.stmt
    line: int
    change: operators.Change

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The tree with the fault in it, for the time of the context."""
        change = self.change
        owner, field, at = change.owner, change.field, change.index
        held = getattr(owner, field)
        new = change.new if at is None else [*held[:at], change.new, *held[at + 1 :]]
        setattr(owner, field, new)
        try:
            yield
        finally:
            setattr(owner, field, held)

    def code(self) -> CodeType:
        """The module with the fault, compiled."""
        with self.applied():
            ast.fix_missing_locations(self.place.tree)
            return compile(self.place.tree, self.place.file, "exec")

    def lines(self) -> tuple[int, int]:
        """The lines of its statement, without the body of a compound one."""
        first, last = self.statement.lineno, self.statement.end_lineno or self.statement.lineno
        body = getattr(self.statement, "body", None) or getattr(self.statement, "cases", None)
        if isinstance(body, list):
            inner = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            last = max(first, inner.lineno - 1)
        return min(first, self.line), max(last, self.line)

    def diff(self) -> tuple[str, str]:
        """The lines that differ, before and after, in one line each; long ones are cut."""
        around = _around(self.place.tree, self.statement)
        before = ast.unparse(around)
        with self.applied():
            after = ast.unparse(around)
        lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
        gone, come = (
            " ⏎ ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )
        return shortened(gone, come)

    def key(self) -> Key:
        """What stays the same when lines move: file, function, diff."""
        return (self.place.file, self.place.function, *self.diff())


def _around(tree: ast.Module, statement: ast.stmt) -> ast.AST:
    """The statement's parent: the statement itself may be what is replaced."""
    for node in ast.walk(tree):
        if any(child is statement for child in ast.iter_child_nodes(node)):
            return node
    return tree


def shortened(was: str, becomes: str) -> tuple[str, str]:
    """Two lines; long ones are cut to what differs and a little around it."""
    if max(len(was), len(becomes)) <= SHOWN:
        return was, becomes
    same = _alike(was, becomes)
    alike = _alike(was[same:][::-1], becomes[same:][::-1])
    start, end = max(same - CONTEXT, 0), max(alike - CONTEXT, 0)
    return _cut(was, start, end), _cut(becomes, start, end)


def _alike(one: str, other: str) -> int:
    """How many characters they begin with in common."""
    pairs = zip(one, other, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _cut(text: str, start: int, end: int) -> str:
    kept = text[start : len(text) - end]
    kept = kept if len(kept) <= 3 * SHOWN else f"{kept[:SHOWN]} … {kept[-SHOWN:]}"
    return f"{'… ' if start else ''}{kept}{' …' if end else ''}"


def mutants_of(file: str, tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    return list(_below(Place(file, tree), tree))


def _below(place: Place, owner: ast.AST) -> Iterator[Mutant]:
    for field, index, node in parts_of(owner):
        here = place.inside(owner, field)
        statement = node if isinstance(node, ast.stmt) else here.statement
        for change in operators.changes(owner, field, index, node):
            if change.in_functions_only and here.at_import:
                continue
            assert statement is not None
            line = getattr(node, "lineno", getattr(owner, "lineno", statement.lineno))
            yield Mutant(here, statement, line, change)
        yield from _below(here, node)
