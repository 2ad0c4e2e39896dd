"""``docs/settings.md``, made from `streaming.settings`: ``python -m deploy.settings_page``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

from streaming.settings import FIXED, GUARDED, PREFIX, SECONDS, Section, Settings

HEAD = f"""# Settings

Made by `make docs` from `streaming/settings/`: change them there.

A setting is looked up in the environment first, then in the TOML file that `--config` names, then
it has its default. In the environment, lists are comma-separated. A name that is not known, or a
value that is not possible, is refused with one line and exit code 2. Durations are seconds. A
guard depends on the bounds *in repair mode*: a stream that repairs refuses other values
([limits.md](limits.md#settings)).

```toml
[cassandra]                  # or {PREFIX}CASSANDRA__HOSTS=10.0.0.1,10.0.0.2
hosts = ["10.0.0.1", "10.0.0.2"]
```
"""

SPARK = f"""## [spark]

Options that are passed to Spark as they are: `"spark.executor.memory" = "4g"`. They stand in the
file only ([cluster.md](cluster.md)). Fixed are
{", ".join(f"`{name}`" for name in FIXED)}.
"""
NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
}
BOUNDS = ((Gt, "gt", ">"), (Ge, "ge", "≥"), (Lt, "lt", "<"), (Le, "le", "≤"))


def page() -> str:
    """The whole page."""
    return "\n".join((HEAD, *_sections()))


def _sections() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        if name == "spark":
            yield SPARK
            continue
        section = field.annotation
        assert isinstance(section, type)
        assert issubclass(section, Section)
        yield f"## [{name}]"
        yield ""
        yield (section.__doc__ or "").strip()
        yield ""
        yield "| setting | type | default | what it is | in the environment |"
        yield "|---|---|---|---|---|"
        for setting, told in section.model_fields.items():
            yield _row(name, setting, told)
        yield ""


def _row(section: str, setting: str, told: FieldInfo) -> str:
    variable = f"{PREFIX}{section}__{setting}".upper()
    guarded = [each.allowed for each in GUARDED if each.setting == f"{section}.{setting}"]
    kinds = "; ".join((kind(told), *(f"in repair mode {each}" for each in guarded)))
    cells = (f"`{setting}`", kinds, _default(told.default), told.description or "")
    return (
        "| " + " | ".join((*(cell.replace("|", "\\|") for cell in cells), f"`{variable}`")) + " |"
    )


def kind(told: FieldInfo) -> str:
    """The type and its bounds, in words."""
    bounds = [
        f"{sign} {getattr(limit, name):g}"
        for limit in told.metadata
        for bound, name, sign in BOUNDS
        if isinstance(limit, bound)
    ]
    bounds += [f"at least {each.min_length}" for each in told.metadata if isinstance(each, MinLen)]
    name = SECONDS if SECONDS in told.metadata else _named(told.annotation)
    return ", ".join((name, *bounds))


def _named(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        return f"list of {_named(get_args(annotation)[0])}"
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{each}`" for each in get_args(annotation))
    if isinstance(annotation, UnionType):
        return _named(next(each for each in get_args(annotation) if each is not NoneType))
    return NAMES[annotation]


def _default(value: object) -> str:
    match value:
        case None:
            return "not set"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{[str(each) for each in value]}`".replace("'", '"')
        case str() | Path():
            return f'`"{value}"`'
        case _:
            return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(page())
