"""The servers' configuration files, from the templates that production starts from too."""

from pathlib import Path
from string import Template

from deploy.embedded.jars import ROOT

DEPLOY = ROOT / "deploy"


def render(template: Path, target: Path, **values: str | int) -> Path:
    """Fill `template` in and write it to `target`. A name without a value is a KeyError."""
    text = Template(template.read_text(encoding="utf-8")).substitute(values)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target
