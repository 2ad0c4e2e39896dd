"""deploy/cassandra/roles.cql: its grants from the projections' declarations, and its statements.

`make docs` writes the grants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from reconcilers.declared.families import FAMILIES
from reconcilers.rows.table_use import optional_table

ROLES = Path(__file__).with_name("cassandra") / "roles.cql"
BEGIN = "-- Made by `make docs` from what the projections declare:\n"
END = "-- (up to here)\n"
ROLE, PASSWORD = "reconciler", "change-me"
"""As the file has them."""


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


def statements(with_grants_of: Iterable[str], copies: int = 1) -> list[str]:
    """Those of the file, with so many copies; grants of some tables are comments, if not named."""
    text = ROLES.read_text(encoding="utf-8").replace(
        "'replication_factor': 3", f"'replication_factor': {copies}"
    )
    for table in with_grants_of:
        text = re.sub(rf"^-- (GRANT \w+ ON TABLE \w+\.{table} )", r"\1", text, flags=re.MULTILINE)
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [each.strip() for each in code.split(";") if each.strip()]


if __name__ == "__main__":
    ROLES.write_text(rewritten(ROLES.read_text(encoding="utf-8")), encoding="utf-8")
