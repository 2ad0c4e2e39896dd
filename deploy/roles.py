"""The grants of deploy/cassandra/roles.cql for projections, from their declarations: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconcilers.families import FAMILIES

ROLES = Path(__file__).with_name("cassandra") / "roles.cql"
BEGIN = "-- Made by `make docs` from what the projections declare:\n"
END = "-- (up to here)\n"


def rewritten(text: str) -> str:
    """The file with its made part made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{''.join(_grants())}{END}{after}"


def _grants() -> Iterator[str]:
    for family in FAMILIES:
        for projection in family.projections:
            yield f"-- {projection.name}:\n"
            for permission in ("SELECT", "MODIFY"):
                yield f"GRANT {permission} ON TABLE apache_james.{projection.table} TO reconciler;\n"


if __name__ == "__main__":
    ROLES.write_text(rewritten(ROLES.read_text(encoding="utf-8")), encoding="utf-8")
