"""What a statement of the mail server writes, read from its CQL and values. Pure.

It knows the shapes of CQL that deploy.mailserver sends, and refuses any other: a history with a
gap would accuse the product of what a user wrote.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from deploy.nemesis.tables import TABLES, JsonValue, RowId, TablePart, canonical, row_id

SHAPES = (
    re.compile(
        r"(?P<kind>INSERT) INTO \w+\.(?P<table>\w+) \((?P<columns>[\w, ]+)\) VALUES \([?, ]+\)"
        r"(?P<condition> IF NOT EXISTS)?(?P<stamped_last> USING TIMESTAMP \?)?"
    ),
    re.compile(
        r"(?P<kind>UPDATE) \w+\.(?P<table>\w+)(?P<stamped> USING TIMESTAMP \?)?"
        r" SET (?P<assignments>.+?) WHERE (?P<where>.+?)(?P<condition> IF \w+ = \?)?"
    ),
    re.compile(
        r"(?P<kind>DELETE) FROM \w+\.(?P<table>\w+)(?P<stamped> USING TIMESTAMP \?)?"
        r" WHERE (?P<where>.+?)(?P<condition> IF EXISTS)?"
    ),
)
ASSIGNMENT = re.compile(
    r"(?P<column>\w+) = (\?|(?P=column) (?P<sign>[+-]) \?|(?P<first>\? \+) \w+)"
)


class UserWriteKind(StrEnum):
    """What a user's statement does."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class UserStatement:
    """One statement that writes. `key` is the row's, of a delete perhaps only a prefix of it.

    `cells` has the plain columns (None: deleted), of a counter what is added. Of sets and lists
    `replaced` has all elements, `added` and `removed` some. `time` is USING TIMESTAMP (µs).
    `conditional`: a lightweight transaction.
    """

    table: str
    kind: UserWriteKind
    key: RowId
    cells: Mapping[str, JsonValue] = field(default_factory=dict)
    replaced: Mapping[str, list[JsonValue]] = field(default_factory=dict)
    added: Mapping[str, list[JsonValue]] = field(default_factory=dict)
    removed: Mapping[str, list[JsonValue]] = field(default_factory=dict)
    time: int | None = None
    conditional: bool = False


def user_statement(cql: str, values: Sequence[Any]) -> UserStatement | None:
    """What a prepared statement writes with these values; None if it only reads.

    Raises ValueError if the CQL has another shape, or names a table that is not in TABLES.
    """
    if cql.startswith("SELECT "):
        return None
    told = next((match for shape in SHAPES if (match := shape.fullmatch(cql))), None)
    try:
        if told is not None and told["table"] in TABLES:
            return _read(told.groupdict(), list(values))
    except ValueError as error:
        raise ValueError(f"the history cannot record this statement: {cql}: {error}") from error
    raise ValueError(f"the history cannot record this statement: {cql}")


def _read(told: Mapping[str, str | None], values: list[Any]) -> UserStatement:
    table = str(told["table"])
    time = None
    if told.get("stamped"):
        time = values.pop(0)
    if told.get("stamped_last"):
        time = values.pop()
    kind = UserWriteKind(str(told["kind"]).lower())
    columns = told.get("columns")
    if columns:
        given = dict(zip(columns.split(", "), values, strict=True))
        key = row_id(table, given)
        changes = [(name, "", given[name]) for name in given if name not in TABLES[table].key]
    else:
        changes, rest = _assignments(told.get("assignments"), values)
        names = [each.removesuffix(" = ?") for each in str(told["where"]).split(" AND ")]
        key = row_id(table, dict(zip(names, rest[: len(names)], strict=True)))
    if TABLES[table].part is TablePart.COUNTER and kind is UserWriteKind.UPDATE:
        kind = UserWriteKind.COUNT
        changes = [(column, "", value) for column, _, value in changes]
    groups = _groups(changes)
    return UserStatement(table, kind, key, **groups, time=time, conditional=bool(told["condition"]))


def _assignments(
    text: str | None, values: list[Any]
) -> tuple[list[tuple[str, str, Any]], list[Any]]:
    """(column, sign, value) of each assignment, and the values that are left."""
    changes = []
    for place, assignment in enumerate(text.split(", ") if text else ()):
        match = ASSIGNMENT.fullmatch(assignment)
        if match is None:
            raise ValueError(f"not an assignment: {assignment}")
        sign = match["sign"] or ("+" if match["first"] else "")
        changes.append((match["column"], sign, values[place]))
    return changes, values[len(changes) :]


def _groups(changes: Sequence[tuple[str, str, Any]]) -> dict[str, dict[str, Any]]:
    """The changes by how they change their column."""
    groups: dict[str, dict[str, Any]] = {"cells": {}, "replaced": {}, "added": {}, "removed": {}}
    for column, sign, value in changes:
        name = {"+": "added", "-": "removed"}.get(sign, "cells")
        if not sign and isinstance(value, set | frozenset | list):
            name = "replaced"
        groups[name][column] = canonical(value)
    return groups
