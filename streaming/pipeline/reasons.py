"""Reasons of dead letters, as Spark columns: another converter, or a value of the wrong type."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from reconcilers.words.key import INTEGERS, TIMED, UUIDS, KeyColumn
from streaming.topics.formats import has_schema, is_binary

UUID = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"
TIMED_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-1[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


def misread(part: str, otherwise: str) -> Column:
    """Why a record's key or value cannot be read: an agent's converter, or the other reason."""
    text = F.col(part).cast("string")
    return (
        F.when(F.substring(part, 1, 1) == F.lit(b"\0"), is_binary(part))
        .when(F.get_json_object(text, "$.payload").isNotNull(), has_schema(part))
        .otherwise(otherwise)
    )


def or_wrong_type(reason: Column, column: KeyColumn, text: Column) -> Column:
    """The reason, or that a value does not have its column's type."""
    if column.type in UUIDS:
        reason = reason.when(~text.rlike(UUID), f"wrong type: {column.name} is not a UUID")
    if column.type in TIMED:
        why = f"wrong type: {column.name} is not a time-based UUID"
        return reason.when(~text.rlike(TIMED_UUID), why)
    if column.type in INTEGERS:
        wrong = text.isNotNull() & text.try_cast("bigint").isNull()
        return reason.when(wrong, f"wrong type: {column.name} is not an integer")
    return reason


def any_wrong(ids: list[tuple[KeyColumn, Column]], types: frozenset[str], pattern: str) -> Column:
    """Whether any id of one of these types is not null and does not match the pattern."""
    wrong = F.lit(False)
    for column, value in ids:
        if column.type in types:
            wrong |= value.isNotNull() & ~value.rlike(pattern)
    return wrong
