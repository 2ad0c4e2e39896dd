"""Rows, writes and findings as JSON, and exactly back.

A value without a JSON type is an object with one member, which names the type::

    {"uuid": "…"}   {"datetime": "2026-11-21T10:00:00.123000"}   {"set": ["a", "b"]}

A date outside Python's calendar is a number of milliseconds since 1970. A write is stored with the
name of its projection. Reading finds the projection in the family, so a projection that the family
no longer declares is not rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.tally import Sum, Tally
from reconcilers.declared.writes import (
    AddRow,
    AddToCounter,
    AddToSet,
    DeleteRow,
    RemoveFromSet,
    SetCells,
    Write,
)
from reconcilers.rows.acceptance import Accepted, Reason
from reconcilers.rows.finding import WAITING, Finding, State
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import named, slot_of
from reconcilers.words.millis import Millis
from reconcilers.words.model import Kind, Row, Slot, Value
from reconcilers.words.waiting import Wait, Waiting

Json = dict[str, Any]


def value_to_json(value: Value) -> object:
    """A cell as JSON. Dates are in UTC, without a zone."""
    match value:
        case UUID():
            return {"uuid": str(value)}
        case Millis():
            text = str(value)
            return {"datetime": text if "T" in text else int(value)}
        case frozenset():
            return {"set": sorted(value)}
        case _:
            return value


def value_from_json(value: object) -> Value:
    """The cell of a JSON value made by `value_to_json`. Raises ValueError for any other."""
    match value:
        case None | bool() | int() | str():
            return value
        case {"uuid": str(text)}:
            return UUID(text)
        case {"datetime": str(text)}:
            return Millis.of(datetime.fromisoformat(text))
        case {"datetime": int(number)}:
            return Millis(number)
        case {"set": list(elements)}:
            return frozenset(elements)
        case _:
            raise ValueError(f"not a cell of the journal: {value!r}")


def row_to_json(row: Row) -> Json:
    """A row with its write times (µs) as JSON."""
    return {
        "cells": {column: value_to_json(value) for column, value in row.cells.items()},
        "written": dict(row.written),
    }


def row_from_json(row: Json) -> Row:
    """The row of a JSON value made by `row_to_json`."""
    return Row(
        {column: value_from_json(value) for column, value in row["cells"].items()},
        dict(row["written"]),
    )


def write_to_json(write: Write | AddToCounter, family: Family) -> Json:
    """A guarded write as JSON. Raises ValueError for an unknown kind of write."""
    slot = named(family.key, write.slot.key)
    if isinstance(write, AddToCounter):
        return _counter_to_json(write, slot)
    where: Json = {"projection": write.projection.name, **slot, "at": write.at}
    match write:
        case SetCells():
            cells = {column: value_to_json(value) for column, value in write.cells.items()}
            return {"write": "set_cells", **where, "cells": cells}
        case AddToSet():
            return {"write": "add_to_set", **where, **_elements(write)}
        case RemoveFromSet():
            return {"write": "remove_from_set", **where, **_elements(write)}
        case AddRow():
            return {"write": "add_row", **where}
        case DeleteRow():
            return {"write": "delete_row", **where}
        case _:
            raise ValueError(f"not a write that the journal can keep: {write!r}")


def _counter_to_json(write: AddToCounter, slot: Json) -> Json:
    return {
        "write": "add_to_counter",
        "tally": write.tally.name,
        "table": write.tally.table,
        **slot,
        "key": value_to_json(write.key),
        "round": write.round,
        "deltas": {str(each): delta for each, delta in write.deltas.items()},
    }


def _elements(write: AddToSet | RemoveFromSet) -> Json:
    return {"column": write.column, "elements": sorted(write.elements)}


_BUILD: dict[str, Callable[[Projection, Slot, Json], Write]] = {
    "set_cells": lambda projection, slot, fields: SetCells(
        projection,
        slot,
        fields["at"],
        {column: value_from_json(value) for column, value in fields["cells"].items()},
    ),
    "add_to_set": lambda projection, slot, fields: AddToSet(
        projection, slot, fields["at"], fields["column"], frozenset(fields["elements"])
    ),
    "remove_from_set": lambda projection, slot, fields: RemoveFromSet(
        projection, slot, fields["at"], fields["column"], frozenset(fields["elements"])
    ),
    "add_row": lambda projection, slot, fields: AddRow(projection, slot, fields["at"]),
    "delete_row": lambda projection, slot, fields: DeleteRow(projection, slot, fields["at"]),
}


def write_from_json(write: Json, family: Family) -> Write | AddToCounter:
    """The write, on what the family declares now. Raises `Misconfigured` if it declares none."""
    slot = slot_of(family.key, write)
    if write["write"] == "add_to_counter":
        deltas = {Sum(name): delta for name, delta in write["deltas"].items()}
        key = value_from_json(write["key"])
        assert isinstance(key, UUID | str)
        tally = _sent_to(_declared(write["tally"], family.name, family.tallies), write)
        return AddToCounter(tally, slot, key, write["round"], deltas)
    projection = _declared(write["projection"], family.name, family.projections)
    return _BUILD[write["write"]](projection, slot, write)


def _sent_to(kept: Tally, write: Json) -> Tally:
    """The tally of the table that was written; the installation may use another one by now."""
    table = write["table"]
    if table == kept.table:
        return kept
    tallies = (each for family in FAMILIES for each in family.tallies if each.name == kept.name)
    return next((each for each in tallies if each.table == table), kept)


Declared = TypeVar("Declared", Projection, Tally)


def _declared(name: str, family: str, declared: Iterable[Declared]) -> Declared:
    for each in declared:
        if each.name == name:
            return each
    raise Misconfigured(
        f"the journal holds a write to projection {name}, which family {family} does not"
        " declare: was it switched off, or does the journal belong to a newer version?"
    )


def finding_to_json(finding: Finding, family: Family) -> Json:
    """A finding as JSON, with all fields; its key and source have their declared names."""
    return {
        "family": finding.family,
        "projection": finding.projection,
        **named(family.key, finding.slot.key),
        family.truth.source.name: finding.source,
        "kind": str(finding.kind),
        "state": str(finding.state),
        "sentence": finding.sentence,
        "found_at": finding.found_at,
        "oldest": finding.oldest,
        "attempts": finding.attempts,
        "tried_at": finding.tried_at,
        "batch": finding.batch,
        "before": None if finding.before is None else row_to_json(finding.before),
        "writes": [write_to_json(write, family) for write in finding.writes],
        "next_look": finding.next_look,
        "accepted": [accepted_to_json(each) for each in sorted(finding.accepted, key=_given)],
        "truth": [row_to_json(row) for row in finding.truth],
        "waits": waiting_to_json(finding.waits),
    }


def finding_from_json(finding: Json, family: Family) -> Finding:
    """The finding of a JSON value made by `finding_to_json`. Raises as `write_from_json` does."""
    before = finding["before"]
    return Finding(
        family=finding["family"],
        projection=finding["projection"],
        slot=slot_of(family.key, finding),
        source=finding[family.truth.source.name],
        kind=Kind(finding["kind"]),
        state=State(finding["state"]),
        sentence=finding["sentence"],
        found_at=finding["found_at"],
        oldest=finding["oldest"],
        attempts=finding["attempts"],
        tried_at=finding["tried_at"],
        batch=finding["batch"],
        before=None if before is None else row_from_json(before),
        writes=tuple(write_from_json(write, family) for write in finding["writes"]),
        next_look=finding["next_look"],
        accepted=frozenset(map(accepted_from_json, finding["accepted"])),
        truth=tuple(row_from_json(row) for row in finding["truth"]),
        waits=waiting_from_json(finding["waits"]),
    )


def _given(accepted: Accepted) -> tuple[int, str]:
    return accepted.at, str(accepted.reason)


def accepted_to_json(accepted: Accepted) -> Json:
    """An acceptance as JSON."""
    reason = accepted.reason
    return {
        "kind": str(reason.kind),
        "wait": None if reason.wait is None else reason.wait.value,
        "error": dict(reason.error),
        "found_at": accepted.found_at,
        "at": accepted.at,
    }


def accepted_from_json(accepted: Json) -> Accepted:
    """The acceptance of a JSON value made by `accepted_to_json`."""
    wait = None if accepted["wait"] is None else Wait(accepted["wait"])
    reason = Reason(Kind(accepted["kind"]), wait, tuple(sorted(accepted["error"].items())))
    return Accepted(reason, accepted["found_at"], accepted["at"])


def waiting_to_json(waiting: Waiting | None) -> Json | None:
    """A wait as JSON, None for no wait."""
    return None if waiting is None else {"wait": waiting.wait.value, "why": waiting.why}


def waiting_from_json(waiting: Json | None) -> Waiting | None:
    """The wait of a JSON value made by `waiting_to_json`."""
    return None if waiting is None else Waiting(Wait(waiting["wait"]), waiting["why"])


def log_line(finding: Finding, family: Family, state: State, at: int) -> Json:
    """The log line of a finding that came to a state ``at`` a time (µs)."""
    waits = finding.waits if state in WAITING else None
    return {"at": at, **finding_to_json(replace(finding, state=state, waits=waits), family)}


def text_of(value: object) -> str:
    """Compact JSON for a text column."""
    return json.dumps(value, separators=(",", ":"))
