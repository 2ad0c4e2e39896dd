"""The one option for what is printed, ``--format``, and rows in each of its forms."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from checkpoints.codec import Json

FORMATS = TABLE, ARRAY, LINES, CSV = "table", "json", "jsonl", "csv"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet reads as the beginning of a formula."""
GAP = "  "


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format`` of a command that prints rows."""
    parser.add_argument("--format", choices=FORMATS, default=TABLE, help=f"({TABLE})")


def add_object_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format`` of a command that prints objects, which fit no table of CSV."""
    forms = (TABLE, ARRAY, LINES)
    parser.add_argument("--format", choices=forms, default=TABLE, help=f"({TABLE})")


def object_text(form: str, value: Json) -> str:
    """One object, over several lines or as one of ``jsonl``."""
    return json.dumps(value, indent=None if form == LINES else 2)


def formatted(form: str, rows: Iterable[Json], columns: Sequence[str] = ()) -> Iterator[str]:
    """The lines of rows. Only CSV and a table leave out what is in no column."""
    match form:
        case "json":
            return _as_array(rows)
        case "jsonl":
            return (json.dumps(each) for each in rows)
        case "csv":
            return _as_csv(rows, columns)
    return _as_table(rows, columns)


def _as_array(rows: Iterable[Json]) -> Iterator[str]:
    before = "["
    for each in rows:
        yield f"{before}{json.dumps(each)}"
        before = ","
    yield "[]" if before == "[" else "]"


def _as_csv(rows: Iterable[Json], columns: Sequence[str]) -> Iterator[str]:
    """A header, then a line for each row. A text like a formula gets an apostrophe."""
    yield ",".join(columns)
    for each in rows:
        cells = [cell(each.get(column)) for column in columns]
        text = io.StringIO()
        safe = [f"'{shown}" if shown.startswith(FORMULA) else shown for shown in cells]
        csv.writer(text, lineterminator="").writerow(safe)
        yield text.getvalue()


def _as_table(rows: Iterable[Json], columns: Sequence[str]) -> Iterator[str]:
    """A line of names, then a line for each row, in columns; all rows are read first."""
    table = [tuple(columns), *(tuple(cell(each.get(name)) for name in columns) for each in rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(columns))]
    for row in table:
        yield GAP.join(f"{each:<{width}}" for each, width in zip(row, widths, strict=True)).rstrip()


def cell(value: object) -> str:
    """A value as text: nothing for `None`, and JSON for what is no text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
