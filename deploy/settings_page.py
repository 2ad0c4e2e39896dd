"""``docs/settings.md``, made from `streaming.settings`: ``python -m deploy.settings_page``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from streaming.settings import CONFIG, FIXED, PREFIX, USUAL, Section, Settings
from streaming.settings.example import takes
from streaming.settings.kinds import written

HEAD = f"""# Settings

Made by `make docs` from `streaming/settings/`: change them there.

A setting is looked up in the environment first, then in the settings file (TOML), then it has its
default. The file is the one of `--config` (before or after the command), else the one that
`{CONFIG}` names, else `{USUAL}` if it exists. In the environment, lists
are comma-separated. If names are not known or values not possible, a command ends with exit
code 2 and one line for each, with its place. Durations are seconds. A guard depends on the bounds
*in repair mode*: a stream that repairs refuses other values ([limits.md](limits.md#settings)).

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
    default = "not set" if told.default is None else f"`{written(told.default)}`"
    cells = (f"`{setting}`", takes(section, setting, told), default, told.description or "")
    return (
        "| " + " | ".join((*(cell.replace("|", "\\|") for cell in cells), f"`{variable}`")) + " |"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
