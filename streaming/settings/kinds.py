"""What a setting takes, in words, and its values as TOML writes them."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
}
BOUNDS = ((Gt, "gt", ">"), (Ge, "ge", "≥"), (Lt, "lt", "<"), (Le, "le", "≤"))


def kind(told: FieldInfo) -> str:
    """The type of a setting and its bounds, in words."""
    bounds = [
        f"{sign} {getattr(limit, name):g}"
        for limit in told.metadata
        for bound, name, sign in BOUNDS
        if isinstance(limit, bound)
    ]
    bounds += [f"at least {each.min_length}" for each in told.metadata if isinstance(each, MinLen)]
    marks = [each for each in told.metadata if isinstance(each, str)]
    name = marks[0] if marks else _named(told.annotation)
    return ", ".join((name, *bounds))


def choices(told: FieldInfo) -> tuple[str, ...]:
    """The values of a setting that takes one of few; else none."""
    return get_args(told.annotation) if get_origin(told.annotation) is Literal else ()


def written(value: object) -> str:
    """A value as TOML writes it. `None` has no such form: it is not set."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(written, value))}]"
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False)
        case _:
            return str(value)


def _named(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        return f"list of {_named(get_args(annotation)[0])}"
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{each}`" for each in get_args(annotation))
    if isinstance(annotation, UnionType):
        return _named(next(each for each in get_args(annotation) if each is not NoneType))
    return NAMES[annotation]
