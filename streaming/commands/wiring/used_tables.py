"""Which families of a process are compared: not those whose table this James does not write."""

from __future__ import annotations

import logging

from reconcilers.declared.family import Family
from reconcilers.rows.table_use import may_be_unused, optional_table
from reconcilers.words.errors import ReadFailed, Refused
from streaming.settings import Settings
from streaming.tables import connect, use_of

log = logging.getLogger("reconciler")


def used(settings: Settings, families: tuple[Family, ...]) -> tuple[Family, ...]:
    """The bound families without those whose optional table James does not write; each is logged.

    Raises `reconcilers.words.errors.Retryable`.
    """
    unused = {each.name: why for each in families if (why := _why_unused(settings, each))}
    for why in unused.values():
        log.warning("%s; nothing is compared or written there: see `reconcile doctor`", why)
    return tuple(each for each in families if each.name not in unused)


def _why_unused(settings: Settings, family: Family) -> str | None:
    if not may_be_unused(family):
        return None
    try:
        return use_of(connect(settings.cassandra), settings.cassandra, family).why_unused
    except (ReadFailed, Refused) as why:
        return f"whether this James uses {optional_table(family)} is not known: {why}"
