"""The tables whose changes are captured: what the declared families wake on, and our own canaries.

`python -m deploy.wake_tables` prints the families' tables, for `python -m deploy.embedded up
--tables`; `python -m deploy.wake_tables schema` the CQL of the canaries, for its `--schema`.
"""

import sys
from collections.abc import Iterable

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from streaming.settings import CanarySettings
from streaming.tables import canary_schema


def by(families: Iterable[Family]) -> tuple[str, ...]:
    """The tables whose events wake a key of one of the families, in the order of declaration.

    Those of every projection are among them, kept or not. Counter tables give no event.
    """
    return tuple(
        dict.fromkeys(
            table
            for family in families
            for table in (*family.wakes_on, *(each.table for each in family.projections))
        )
    )


TABLES = by(FAMILIES)
"""Those of the product."""

SCHEMA = canary_schema.statements(CanarySettings().keyspace)
"""The canaries' keyspace and table, which has to be there before the agent starts."""

if __name__ == "__main__":
    print("; ".join(SCHEMA) if sys.argv[1:] == ["schema"] else ",".join(TABLES))
