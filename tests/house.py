"""The house limits that no linter knows, read from the syntax tree of a source file."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PRODUCT = ("reconcilers", "checkpoints", "streaming", "deploy")
FILE_LINES = 300
PROJECTION_LINES = 120
TEST_LINES = 500
FUNCTION_LINES = 40
CLASS_FIELDS = 8
PARAMETERS = 6
VAGUE_NAMES = frozenset(
    {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}
)
NOUNS = frozenset({"ceiling", "ring"})
SETTINGS = frozenset({"BaseModel", "Section", "WithSecrets"})
LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
TEXTS = frozenset({"sentence", "why"})
"""Attributes that hold text for people: nothing is decided by their words."""
PARSERS = frozenset(
    {"startswith", "endswith", "partition", "rpartition", "split", "find", "index", "replace"}
    | {"removeprefix", "removesuffix", "count"}
)
READERS = PARSERS | {"get", "items", "keys", "values"}
METERS = frozenset({"Counter", "Gauge", "Histogram"})
"""What a class measures is a list to look at, however long."""
CLOCK_CALLS = frozenset({"now", "utcnow", "today", "localtime"})

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Breach:
    """One place that breaks a limit; `rule` is the name the tests use."""

    path: str
    line: int
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.detail}"


def source_files(root: Path) -> list[Path]:
    """Every Python file of the product and of the tests, in a stable order."""
    folders = (*PRODUCT, "tests")
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def breaches(path: str, source: str) -> list[Breach]:
    """What is wrong with the file at `path` (relative to the project, with slashes)."""
    parts = PurePosixPath(path).parts
    found = list(_file_length(path, source))
    if parts[0] not in PRODUCT:
        return found
    tree = ast.parse(source, filename=path)
    found += _vague_name(path)
    found += _participle(path, tree)
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            found += _function(path, node)
        elif isinstance(node, ast.ClassDef):
            found += _fields(path, node)
        elif isinstance(node, ast.ExceptHandler):
            found += _swallowed(path, node)
        elif isinstance(node, ast.Call):
            found += _formatted_log(path, node)
            if parts[0] == "reconcilers":
                found += _clock(path, node)
        if isinstance(node, ast.Call | ast.Compare):
            found += _parsed_text(path, node)
    return found


def twin_types(root: Path) -> dict[str, list[str]]:
    """The names that two types of the product share, with their files: one word, one meaning."""
    found: dict[str, list[str]] = {}
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        if not name.startswith(PRODUCT):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (each := _type_named(node)) is not None:
                found.setdefault(each, []).append(name)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def _type_named(node: ast.stmt) -> str | None:
    """The class or the alias that a statement defines; None if it defines neither."""
    match node:
        case ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) if name[0].isupper() and not name.isupper():
            return name
    return None


def _file_length(path: str, source: str) -> Iterator[Breach]:
    parts = PurePosixPath(path).parts
    if parts[0] == "tests":
        limit = TEST_LINES
    elif parts[:3] == ("reconcilers", "declared", "projections"):
        limit = PROJECTION_LINES
    else:
        limit = FILE_LINES
    lines = len(source.splitlines())
    if lines > limit:
        yield Breach(path, lines, "file-length", f"{lines} lines, at most {limit}")


def _vague_name(path: str) -> Iterator[Breach]:
    for part in PurePosixPath(path).with_suffix("").parts:
        if VAGUE_NAMES.intersection(part.lower().split("_")):
            yield Breach(path, 1, "vague-name", f"'{part}' does not say what is in it")


def _participle(path: str, tree: ast.Module) -> Iterator[Breach]:
    """A module is named after a thing; a word in -ing or -ed only if its class is the thing."""
    stem = PurePosixPath(path).stem
    name = stem.title().replace("_", "")
    own = any(isinstance(each, ast.ClassDef) and each.name.endswith(name) for each in tree.body)
    if stem.endswith(("ing", "ed")) and stem not in NOUNS and not own:
        yield Breach(path, 1, "participle", f"'{stem}' does not say what is so, or who does it")


def _function(path: str, node: FunctionNode) -> Iterator[Breach]:
    lines = _code_lines(node)
    if lines > FUNCTION_LINES:
        detail = f"{node.name} has {lines} lines without its docstring, at most {FUNCTION_LINES}"
        yield Breach(path, node.lineno, "function-length", detail)
    parameters = _parameters(node)
    if len(parameters) > PARAMETERS:
        detail = f"{node.name} has {len(parameters)} parameters, at most {PARAMETERS}"
        yield Breach(path, node.lineno, "parameters", detail)
    for argument in _boolean_parameters(node):
        detail = f"{node.name}({argument.arg}): two functions, or an enum, say which one is meant"
        yield Breach(path, argument.lineno, "boolean-parameter", detail)


def _fields(path: str, node: ast.ClassDef) -> Iterator[Breach]:
    """A class that holds more does more than one thing; values and settings are only read."""
    fields = _declared(node) | _assigned(node)
    if _is_setting(node) or (_is_frozen(node) and not _acts(node, fields)):
        return
    if len(fields) > CLASS_FIELDS:
        detail = f"{node.name} has {len(fields)} fields, at most {CLASS_FIELDS}"
        yield Breach(path, node.lineno, "class-fields", detail)


def _is_setting(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base) in SETTINGS for base in node.bases)


def _is_frozen(node: ast.ClassDef) -> bool:
    return any(
        ast.unparse(keyword) == "frozen=True"
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def _acts(node: ast.ClassDef, fields: set[str]) -> bool:
    """Whether a method calls one of its fields, or a method of one that does not only read it."""
    return any(
        isinstance(each, ast.Call) and _called_field(each.func) in fields for each in ast.walk(node)
    )


def _called_field(function: ast.expr) -> str | None:
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=field):
            return field
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=field), attr=method):
            return None if method in READERS else field
    return None


def _declared(node: ast.ClassDef) -> set[str]:
    return {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        if "ClassVar" not in (told := ast.unparse(each.annotation)) and told not in METERS
    }


def _assigned(node: ast.ClassDef) -> set[str]:
    """Attributes that any of its methods assigns, but for statements: those are text, prepared."""
    return {
        target.attr
        for method in node.body
        if isinstance(method, FunctionNode)
        for each in ast.walk(method)
        if not (isinstance(each, ast.Assign) and _prepares(each.value))
        for target in _targets(each)
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }


def _prepares(value: ast.expr) -> bool:
    """Whether it is ``store.prepare(…)``, or a function that says so."""
    if not isinstance(value, ast.Call):
        return False
    return ast.unparse(value.func).rpartition(".")[2].startswith("prepare")


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that a statement assigns."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    for target in targets:
        for each in ast.walk(target):
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                yield each


def _code_lines(node: FunctionNode) -> int:
    """Lines from `def` to the end, less the docstring: explaining is not long-windedness."""
    end = node.end_lineno or node.lineno
    lines = end - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def _parameters(node: FunctionNode) -> list[ast.arg]:
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if named and named[0].arg in {"self", "cls"}:
        del named[0]
    return named


def _boolean_parameters(node: FunctionNode) -> Iterator[ast.arg]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    padding: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*padding, *arguments.defaults, *arguments.kw_defaults]
    for argument, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        defaulted = isinstance(default, ast.Constant) and isinstance(default.value, bool)
        if defaulted or _says_bool(argument.annotation):
            yield argument


def _says_bool(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    match annotation:
        case ast.Name(id=name):
            return name == "bool"
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _says_bool(left) or _says_bool(right)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _says_bool(inner)
    return False


def _swallowed(path: str, node: ast.ExceptHandler) -> Iterator[Breach]:
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    names = {ast.unparse(kind) if kind is not None else "everything" for kind in kinds}
    caught = names & {"everything", "Exception", "BaseException"}
    if caught and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
        detail = f"catches {', '.join(sorted(caught))} and goes on: name the errors expected here"
        yield Breach(path, node.lineno, "catch-all", detail)


def _formatted_log(path: str, node: ast.Call) -> Iterator[Breach]:
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in LOG_METHODS:
        return
    receiver = ast.unparse(function.value).rsplit(".", 1)[-1].lower()
    if "log" in receiver and any(isinstance(argument, ast.JoinedStr) for argument in node.args):
        detail = "give the values as arguments: formatted only if written, and searchable"
        yield Breach(path, node.lineno, "formatted-log", detail)


def _clock(path: str, node: ast.Call) -> Iterator[Breach]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS:
        yield Breach(path, node.lineno, "clock", "reconcilers take the time as an argument")


def _parsed_text(path: str, node: ast.Call | ast.Compare) -> Iterator[Breach]:
    if isinstance(node, ast.Compare):
        asked = [node.left, *node.comparators]
    else:
        function = node.func
        parses = isinstance(function, ast.Attribute) and function.attr in PARSERS
        asked = [function.value] if parses and isinstance(function, ast.Attribute) else []
    for each in asked:
        if isinstance(each, ast.Attribute) and each.attr in TEXTS:
            detail = f"decide by a value, not by the words of {ast.unparse(each)}"
            yield Breach(path, node.lineno, "parsed-text", detail)
