"""The servers' configuration files, from the templates that production starts from too."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from deploy.embedded.jars import ROOT

DEPLOY = ROOT / "deploy"


def render(template: Path, target: Path, **values: str | int) -> Path:
    """Fill `template` in and write it to `target`. A name without a value is a KeyError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_filled(template, values), encoding="utf-8")
    return target


def append(template: Path, target: Path, **values: str | int) -> None:
    """Fill `template` in and add it to the end of `target`, over what stands there."""
    with target.open("a", encoding="utf-8") as file:
        file.write(_filled(template, values))


def _filled(template: Path, values: Mapping[str, str | int]) -> str:
    return Template(template.read_text(encoding="utf-8")).substitute(values)
