"""A projection that the product does not have, declared as its file would: one value.

Its key column has a name of its own, as that of `mailboxRecents` has.
"""

from __future__ import annotations

from dataclasses import replace

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, bind, keeping
from reconcilers.words.model import Row
from tests.builders.indexes import INDEX_SCHEMA, WITH_TABLES


def is_answered(truth: Row) -> bool:
    """Whether the message has a row here."""
    return truth.get("flaguser") is True


ANSWERED = Projection(
    name="answered_uids",
    table="messageanswered",
    key=("mailboxid", "answered_uid"),
    belongs=is_answered,
    optional="answers",
)
ANSWERED_SCHEMA = {
    **INDEX_SCHEMA,
    ANSWERED.table: {"mailboxid": "timeuuid", "answered_uid": "bigint"},
}
DECLARED: Family = replace(MESSAGE, projections=(*WITH_TABLES, ANSWERED))
"""The family with one line more in its tuple."""
WITH_ANSWERED: Family = bind(
    keeping(DECLARED, [each.name for each in DECLARED.projections]), ANSWERED_SCHEMA
)
