"""The tables whose changes are captured: what the declared families wake on, and nothing else.

`python -m deploy.captured` prints them, as `python -m deploy.embedded up --tables` takes them.
"""

from collections.abc import Iterable

from reconcilers.families import FAMILIES
from reconcilers.family import Family


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

if __name__ == "__main__":
    print(",".join(TABLES))
