"""What is not mutated, by rule: changes there could not be seen, or are no fault.

- type annotations, type aliases and variables, the type arguments of `cast` and `isinstance`;
- protocols: they declare, and nothing of them runs;
- docstrings, decorators with their arguments, `__all__`, `if TYPE_CHECKING`;
- log calls; what an error is raised with (that it is raised is mutated); assertions;
- text for people: a string with white space in it, also within an f-string. What is computed for
  it is mutated, as are strings without: keys, names, states;
- the widths of formatted text; `strict=` of `zip`, `repr=` of a field.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
TYPES_ONLY = frozenset({"TypeVar", "NewType", "ParamSpec"})
DUNDERS = frozenset({"__all__", "__slots__"})
UNSEEN_KEYWORDS = frozenset({("zip", "strict"), ("field", "repr")})
TYPE_ARGUMENTS = frozenset({("cast", "args", 0), ("isinstance", "args", 1)})
SKIPPED_FIELDS = frozenset(
    {
        "annotation",
        "returns",
        "decorator_list",
        "format_spec",
        "type_comment",
        "type_params",
        "bases",
        "exc",
        "cause",
        "ctx",
    }
)


def parts_of(owner: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """The nodes right below one, with field and index, but for those that are left as they are."""
    for field, value in ast.iter_fields(owner):
        if field in SKIPPED_FIELDS:
            continue
        if isinstance(value, ast.AST) and not _untouched(owner, field, None, value):
            yield field, None, value
        elif isinstance(value, list):
            for index, node in enumerate(value):
                if isinstance(node, ast.AST) and not _untouched(owner, field, index, node):
                    yield field, index, node


def called(node: ast.AST) -> str:
    """The last name of what is called: ``sorted``, ``replace``; empty when it has none."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def is_message(node: ast.AST) -> bool:
    """Whether it is text for people."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and any(letter.isspace() for letter in text)


def _untouched(owner: ast.AST, field: str, index: int | None, node: ast.AST) -> bool:
    match node:
        case ast.stmt():
            return _is_declaration(node)
        case ast.Constant():
            return is_message(node) or node.value is Ellipsis
        case ast.keyword():
            return (called(owner), node.arg) in UNSEEN_KEYWORDS
    return (called(owner), field, index) in TYPE_ARGUMENTS


def _is_declaration(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.Expr(value=ast.Call() as call):
            return _is_log(call)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.ClassDef(bases=bases):
            return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in DUNDERS or called(value) in TYPES_ONLY or _is_type(name, value)
    return False


def _is_log(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in LOG_METHODS:
        return False
    return "log" in ast.unparse(call.func.value).rsplit(".", 1)[-1].lower()


def _is_type(name: str, value: ast.expr) -> bool:
    """``Place = tuple[str, Slot]``, ``Write = AddRow | DeleteRow``: a name with small letters."""
    if not name[:1].isupper() or name.isupper():
        return False
    return isinstance(value, ast.Subscript | ast.BinOp)
