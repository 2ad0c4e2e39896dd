"""Findings as a table, as JSON, as JSON lines and as CSV. Times are shown in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from checkpoints.codec import Json, accepted_from_json
from reconcilers.declared.families import FAMILIES, family_named
from reconcilers.rows.finding import WAITING, with_reason
from reconcilers.words.iso import iso
from reconcilers.words.key import slot_of, text_of
from streaming.commands.arguments.output import CSV, TABLE, formatted
from streaming.commands.arguments.stored_times import with_iso_times

NAMES = tuple(
    dict.fromkeys(
        column.name
        for family in FAMILIES
        for column in (*family.key, *(() if family.is_source_in_key else (family.truth.source,)))
    )
)
"""What the keys and sources of all families are called, each once; those of messages first."""
COLUMNS = (
    "time",
    "family",
    "projection",
    *NAMES,
    "kind",
    "state",
    "attempts",
    "accepted",
    "found_at",
    "next_look",
    "waits",
    "sentence",
)
TIMES = frozenset({"time", "found_at", "next_look"})


def as_table(findings: Iterable[Json]) -> Iterator[str]:
    """Two lines a finding: its place and kind, then the sentence."""
    nothing = True
    for each in findings:
        nothing = False
        attempts = f", {each['attempts']} attempts" if each["attempts"] else ""
        accepted = f", accepted: {_accepted(each)}" if each["accepted"] else ""
        yield (
            f"{_shown('time', _time(each))}  {each['state']:<10} {each['kind']:<23}"
            f" {each['projection']} {_key(each)}{attempts}{accepted}"
        )
        yield f"    {_told(each)}"
    if nothing:
        yield "no findings"


def listed(form: str, findings: Iterable[Json]) -> Iterator[str]:
    """The lines of findings. JSON has all fields that the journal stores; CSV has `COLUMNS`."""
    if form == TABLE:
        return as_table(findings)
    told = map(_flat if form == CSV else with_iso_times, findings)
    return formatted(form, told, COLUMNS)


def _flat(finding: Json) -> Json:
    """The values of `COLUMNS`, each as text."""
    values = finding | {"time": _time(finding), "sentence": _told(finding)}
    values |= {"waits": _waits(finding).get("wait"), "accepted": _accepted(finding)}
    return {column: _shown(column, values.get(column)) for column in COLUMNS}


def _key(finding: Json) -> str:
    """The key as the command line takes it."""
    columns = family_named(finding["family"]).key
    return text_of(slot_of(columns, finding)) or "whole table"


def _time(finding: Json) -> object:
    """The time of a line of the log, or when an open finding was found."""
    return finding.get("at", finding.get("found_at"))


def _told(finding: Json) -> str:
    """The sentence and what the finding waits for."""
    return with_reason(finding["sentence"], finding["state"], _waits(finding).get("why", ""))


def _accepted(finding: Json) -> str:
    """What a person has accepted, each with its kind and reason."""
    return "; ".join(str(accepted_from_json(each).reason) for each in finding["accepted"])


def _waits(finding: Json) -> Json:
    """What the finding waits for; empty in a state that does not wait."""
    waits: Json = finding.get("waits") or {}
    return waits if finding["state"] in WAITING else {}


def _shown(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column in TIMES:
        return iso(value)
    return str(value)
