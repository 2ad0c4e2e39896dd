"""A complete settings file: each setting with its default, commented out."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from pydantic.fields import FieldInfo

from streaming.settings.given import every_setting
from streaming.settings.kinds import kind, written
from streaming.settings.model import Settings
from streaming.settings.spark import FIXED
from streaming.settings.unsafe import GUARDED

WIDTH = 98
HEAD = (
    "Settings of `reconcile`. Each has its default here: remove the # of those you change. A"
    " variable of the environment comes first: RECONCILE_CASSANDRA__HOSTS=10.0.0.1,10.0.0.2"
)
SPARK = f"Options that are passed to Spark as they are. Fixed are {', '.join(FIXED)}."


def example() -> Iterator[str]:
    """The lines of the file. A setting without a default has no value."""
    yield from _comment(HEAD)
    section = ""
    for name, setting, told in every_setting():
        if name != section:
            section = name
            yield ""
            yield from _comment((Settings.model_fields[name].annotation.__doc__ or "").strip())
            yield f"[{name}]"
        yield from _comment(f"{told.description} ({takes(name, setting, told)})")
        yield f"#{setting} =" + ("" if told.default is None else f" {written(told.default)}")
    yield ""
    yield from _comment(SPARK)
    yield "[spark]"
    yield '#"spark.executor.memory" = "4g"'


def takes(section: str, setting: str, told: FieldInfo) -> str:
    """What a setting takes, in words, with its bounds in repair mode."""
    guarded = [each.allowed for each in GUARDED if each.setting == f"{section}.{setting}"]
    return "; ".join((kind(told), *(f"in repair mode {each}" for each in guarded)))


def _comment(text: str) -> Iterator[str]:
    yield from wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
