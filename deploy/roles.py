"""The grants of projections in deploy/cassandra/roles.cql, from their declarations: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconcilers.declared.families import FAMILIES
from reconcilers.rows.table_use import optional_table

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
        for projection in (each for each in family.projections if not each.only_by):
            table = f"apache_james.{projection.table}"
            comment = "-- " if projection.table == optional_table(family) else ""
            yield f"-- {projection.name}:\n"
            yield f"{comment}GRANT SELECT ON TABLE {table} TO reconciler;\n"
            yield f"{comment}GRANT MODIFY ON TABLE {table} TO reconciler;\n"


if __name__ == "__main__":
    ROLES.write_text(rewritten(ROLES.read_text(encoding="utf-8")), encoding="utf-8")
