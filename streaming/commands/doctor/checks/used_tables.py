"""Optional tables: James writes those that are compared; others that it writes are named."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family, bind
from reconcilers.rows.table_use import ListingUse, may_be_unused, optional_table
from reconcilers.words.errors import Misconfigured, ReadFailed, Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.commands.doctor.checks.permissions import ROLES

SETTING = "attachments.tables"


def used_tables(context: CassandraContext) -> Iterator[Check]:
    """James writes each optional table that is compared. One that it writes alone is named."""
    compared = {optional_table(each) for each in context.families}
    for family in FAMILIES:
        is_compared = optional_table(family) in compared
        if optional_table(family) not in context.schema:
            continue
        try:
            settings, bound = context.settings.cassandra, bind(family, context.schema)
            use = context.cluster.use_of(settings, bound)
        except Misconfigured:
            continue  # `james_tables` reports it
        except (ReadFailed, Refused) as why:
            if is_compared:
                told = f"{why}; nothing is compared or written there"
                yield problem(told, f"grant SELECT ({ROLES}), or take it out of {SETTING}")
            continue
        yield from _compared(family, use) if is_compared else _left_out(use)


def _compared(family: Family, use: ListingUse) -> Iterator[Check]:
    if use.why_unused is not None and not may_be_unused(family):
        told = f"{use.table} has none of the {use.newest} newest rows, which every James writes"
        yield warning(told, "each is reported: was the table restored from an older copy?")
    elif use.why_unused is not None:
        told = f"{use.why_unused}; nothing is compared or written there"
        yield warning(told, f"take it out of {SETTING}")
    elif use.is_used:
        yield fine(f"{use.table} is written by this James")
    else:
        yield fine(f"no message of a sample needs a row in {use.table}")


def _left_out(use: ListingUse) -> Iterator[Check]:
    if use.is_used:
        yield fine(f"{use.table} is written by this James, and not compared: see {SETTING}")
