"""Rows of the table findings: a finding's values in the order of the columns, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from checkpoints import codec
from checkpoints.cassandra.buckets import bucket_of
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding
from reconcilers.words.key import WHOLE_TABLE, named, slot_from_text, text_of

COLUMNS = (
    "projection, key, source, kind, state, sentence, attempts, tried_at, last_batch, found_at,"
    " oldest, next_look, before_image, writes, truth, waits"
)
"""The columns that a look writes. ``accepted`` is written by `CassandraJournal.accept` alone."""
NAMES = tuple(name.strip() for name in COLUMNS.split(","))


def place_of(finding: Finding) -> tuple[str, int, str, str]:
    """The primary key of the finding's row."""
    key = text_of(finding.slot)
    return finding.family, bucket_of(key), finding.projection, key


def values_of(finding: Finding, family: Family) -> tuple[object, ...]:
    """The family and bucket of a finding, then its values for `COLUMNS`."""
    before = None if finding.before is None else codec.row_to_json(finding.before)
    return (
        *place_of(finding),
        finding.source,
        str(finding.kind),
        str(finding.state),
        finding.sentence,
        finding.attempts,
        finding.tried_at,
        finding.batch,
        finding.found_at,
        finding.oldest,
        finding.next_look,
        None if before is None else codec.text_of(before),
        codec.text_of([codec.write_to_json(write, family) for write in finding.writes]),
        codec.text_of([codec.row_to_json(row) for row in finding.truth]),
        codec.text_of(codec.waiting_to_json(finding.waits)),
    )


def findings_of(rows: Iterable[tuple[Any, ...]], family: Family) -> Iterator[Finding]:
    """The findings of rows with `COLUMNS` and ``accepted``.

    A row without a kind is what was accepted of a finding that has ended. Raises `Misconfigured` if
    a write's projection is unknown.
    """
    return (_finding(row, family) for row in rows if row[NAMES.index("kind")] is not None)


def _finding(row: tuple[Any, ...], family: Family) -> Finding:
    fields = dict(zip((*NAMES, "accepted"), row, strict=True))
    given = [json.loads(each) for each in fields.pop("accepted") or ()]
    before, writes, truth, waits = (
        json.loads(str(fields.pop(name) or "null"))
        for name in ("before_image", "writes", "truth", "waits")
    )
    key = str(fields.pop("key"))
    slot = slot_from_text(family.key, key) if key else WHOLE_TABLE
    told = {"family": family.name, "batch": fields.pop("last_batch")}
    told |= {family.truth.source.name: fields.pop("source"), **named(family.key, slot.key)}
    told |= {"before": before, "writes": writes, "truth": truth, "waits": waits}
    told["accepted"] = [each for each in given if each["found_at"] == fields["found_at"]]
    return codec.finding_from_json(fields | told, family)
