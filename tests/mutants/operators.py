"""The faults that are planted: for each node of a syntax tree what may stand there instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutants.untouched import UNSEEN_KEYWORDS, called

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
}
OTHER_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "add": "discard",
    "startswith": "endswith",
    "endswith": "startswith",
    "append": "remove",
    "popleft": "pop",
}
NOT_SWAPPED = frozenset({"isinstance", "getattr", "partial", "cast", "field", "min", "max"})
NOTHING = ast.Constant(None)


@dataclass(frozen=True, slots=True)
class Change:
    """``new`` in a field of ``owner``; some make sense only where a function runs."""

    operator: str
    owner: ast.AST
    field: str
    index: int | None
    new: Any
    in_functions_only: bool = False


Instead = Callable[[str, ast.AST], Change]
"""Makes the change that puts something else in a node's place."""


def changes(owner: ast.AST, field: str, index: int | None, node: ast.AST) -> Iterator[Change]:
    """All faults of one node, which stands in that field of its owner."""

    def instead(operator: str, new: ast.AST) -> Change:
        return Change(operator, owner, field, index, new)

    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp():
            yield from _operations(instead, node)
        case ast.Constant():
            yield from (instead("constant", ast.Constant(new)) for new in _constants(owner, node))
        case ast.Call():
            yield from _calls(instead, node)
        case (
            ast.Match() | ast.Return() | ast.Assign() | ast.AnnAssign() | ast.Lambda() | ast.Slice()
        ):
            yield from _values(node)
        case ast.stmt():
            yield from _statements(instead, node)
    yield from _conditions(node)


def _operations(instead: Instead, node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare():
            for at, compared in enumerate(node.ops):
                for other in COMPARED[type(compared)]:
                    yield Change("comparison", node, "ops", at, other())
        case ast.BoolOp():
            other_op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield Change("and, or", node, "op", None, other_op)
            for at in range(len(node.values)):
                rest = node.values[:at] + node.values[at + 1 :]
                new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
                yield instead("condition dropped", new)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield instead("not, minus", node.operand)
        case ast.BinOp():
            yield from _computed(node)
            if isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
                yield instead("operand dropped", node.left)
            if isinstance(node.op, ast.BitOr | ast.BitAnd):
                yield instead("operand dropped", node.right)


def _computed(node: ast.BinOp | ast.AugAssign) -> Iterator[Change]:
    other = COMPUTED.get(type(node.op))
    if other is not None:
        yield Change("arithmetic, sets", node, "op", None, other())


def _constants(owner: ast.AST, node: ast.Constant) -> Iterator[Any]:
    match node.value:
        case bool() as value:
            yield not value
        case int() | float() as value:
            yield value + 1
            yield value - 1
        case str() as value:
            yield f"XX{value}"
        case None if not isinstance(owner, ast.Compare | ast.MatchSingleton | ast.BinOp):
            yield 0


def _calls(instead: Instead, node: ast.Call) -> Iterator[Change]:
    name = called(node)
    other = OTHER_NAMES.get(name)
    if other is not None:
        where = "id" if isinstance(node.func, ast.Name) else "attr"
        yield Change("other function", node.func, where, None, other)
    if name == "sorted":
        yield instead("not sorted", ast.Call(ast.Name("list", ast.Load()), node.args[:1], []))
    for at, keyword in enumerate(node.keywords):
        if keyword.arg is not None and (name, keyword.arg) not in UNSEEN_KEYWORDS:
            rest = node.keywords[:at] + node.keywords[at + 1 :]
            yield Change("argument dropped", node, "keywords", None, rest)
    if name == "get" and len(node.args) == 2:
        yield Change("argument dropped", node, "args", None, node.args[:1])
    first = node.args[:2]
    if (
        len(first) == 2
        and name not in NOT_SWAPPED
        and not any(isinstance(argument, ast.Starred) for argument in first)
        and ast.dump(first[0]) != ast.dump(first[1])
    ):
        swapped = [first[1], first[0], *node.args[2:]]
        yield Change("arguments swapped", node, "args", None, swapped)


def _statements(instead: Instead, node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            never = ast.If(ast.Constant(False), [ast.Expr(ast.Yield(None))], [])
            yield instead("statement dropped", never)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete() | ast.Raise():
            yield instead("statement dropped", ast.Pass())
        case ast.AugAssign():
            yield from _computed(node)
            yield instead("statement dropped", ast.Pass())
        case ast.Continue():
            yield instead("continue, break", ast.Break())
        case ast.Break():
            yield instead("continue, break", ast.Continue())


def _values(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Slice():
            for end in ("lower", "upper"):
                if getattr(node, end) is not None:
                    yield Change("slice", node, end, None, None)
        case ast.Lambda():
            yield Change("returned", node, "body", None, NOTHING)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield Change("returned", node, "value", None, NOTHING)
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if not _is_none(
            value
        ):
            yield Change("assigned", node, "value", None, NOTHING, in_functions_only=True)
        case ast.Match() if len(node.cases) > 1:
            for at in range(len(node.cases)):
                rest = node.cases[:at] + node.cases[at + 1 :]
                yield Change("case dropped", node, "cases", None, rest)


def _conditions(node: ast.AST) -> Iterator[Change]:
    """A condition turned round; a guard or filter that is not there; an error not dealt with."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            if not isinstance(node.test, ast.Compare | ast.UnaryOp):
                turned = ast.UnaryOp(ast.Not(), node.test)
                yield Change("condition turned round", node, "test", None, turned)
        case ast.comprehension():
            for at in range(len(node.ifs)):
                rest = node.ifs[:at] + node.ifs[at + 1 :]
                yield Change("condition dropped", node, "ifs", None, rest)
        case ast.match_case(guard=ast.expr()):
            yield Change("condition dropped", node, "guard", None, None)
        case ast.ExceptHandler() if not isinstance(node.body[0], ast.Raise):
            yield Change("error not caught", node, "body", None, [ast.Raise(None, None)])


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
