"""Whether James uses a table, from the newest rows of its truth."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.rows.table_use import NEWEST, ListingUse, newest_places
from reconcilers.words.model import Row
from tests.builders.attachments import LISTING, MESSAGE, REFERENCES, content, reference_place
from tests.builders.rows import LONG_AGO

NAMES = [f"a{number}" for number in range(NEWEST + 2)]
PLACES = [reference_place(each) for each in reversed(NAMES)]
"""The newest first."""


def truths() -> list[Row]:
    """A row for each name, each newer than the one before."""
    return [
        row
        for number, name in enumerate(NAMES)
        for row in REFERENCES.truth.rows_of(MESSAGE, [content(name, at=LONG_AGO + number)])
    ]


def test_the_newest_rows_that_belong_are_asked_for() -> None:
    assert newest_places(REFERENCES, LISTING, truths()) == PLACES[:NEWEST]
    assert newest_places(REFERENCES, LISTING, truths()[:2]) == PLACES[-2:]
    none = replace(LISTING, belongs=lambda _truth: False)
    assert newest_places(REFERENCES, none, truths()) == []


def test_a_message_that_a_migration_wrote_again_is_as_old_as_its_id() -> None:
    """James 3.8's migration writes messages of 3.6, which have references, at once."""
    old, new = UUID(int=MESSAGE.int), UUID(int=MESSAGE.int + (10_000 << 96))
    migrated = REFERENCES.truth.rows_of(old, [content("old", at=LONG_AGO + 1_000)])
    since = [
        row
        for name in NAMES[:NEWEST]
        for row in REFERENCES.truth.rows_of(new, [content(name, at=LONG_AGO)])
    ]
    found = newest_places(REFERENCES, LISTING, [*migrated, *since])
    assert set(found) == {reference_place(name, new) for name in NAMES[:NEWEST]}


def test_a_row_without_a_write_time_is_the_oldest() -> None:
    (undated,) = (replace(each, written={}) for each in truths()[-1:])
    assert newest_places(REFERENCES, LISTING, [undated, *truths()[:-1]]) == PLACES[1 : NEWEST + 1]


@pytest.mark.parametrize(
    ("newest", "there", "told"),
    [
        (5, 0, "attachmentmessageid has none of the 5 newest rows"),
        (1, 0, "attachmentmessageid has none of the 1 newest rows"),
        (5, 1, None),
        (0, 0, None),
    ],
)
def test_a_table_without_any_of_them_is_not_used(newest: int, there: int, told: str | None) -> None:
    use = ListingUse(LISTING.table, newest, there)
    assert use.why_unused == (told and f"{told}: this James does not use it")
    assert use.is_used == bool(there)
