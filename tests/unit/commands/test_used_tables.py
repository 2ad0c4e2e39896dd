"""Which families a process compares: not those whose table this James does not write."""

from typing import Any

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.table_use import ListingUse
from reconcilers.words.errors import Refused, Retryable, Unreachable
from streaming.commands.wiring import used_tables
from streaming.settings import Settings
from tests.builders.attachments import ATTACHMENTS, REFERENCES

ALL = (MESSAGE, ATTACHMENTS, REFERENCES)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How many of five rows each table has, or what asking raises."""
    told: dict[str, Any] = {"attachmentv2": 5, "attachmentmessageid": 5}

    def use_of(_session: object, _settings: object, family: Any) -> ListingUse:
        found = told[family.listing.table]
        if isinstance(found, Exception):
            raise found
        return ListingUse(family.listing.table, 5, found)

    monkeypatch.setattr(used_tables, "connect", lambda _: None)
    monkeypatch.setattr(used_tables, "use_of", use_of)
    return told


def test_families_whose_table_is_written_are_compared(there: dict[str, Any]) -> None:
    assert used_tables.used(Settings(), ALL) == ALL


@pytest.mark.parametrize(
    ("found", "told"),
    [(0, "has none of the 5 newest rows"), (Refused("no SELECT"), "is not known: no SELECT")],
)
def test_others_are_left_alone_and_logged(
    there: dict[str, Any], found: object, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    there["attachmentmessageid"] = found
    assert used_tables.used(Settings(), ALL) == (MESSAGE, ATTACHMENTS)
    assert told in caplog.text
    assert "nothing is compared or written there" in caplog.text


def test_a_table_in_which_no_row_is_added_is_compared_though_its_newest_rows_are_gone(
    there: dict[str, Any],
) -> None:
    """Every James writes it: restored from a copy, it lacks just those."""
    there["attachmentv2"] = 0
    assert used_tables.used(Settings(), ALL) == ALL


def test_a_server_that_does_not_answer_leaves_none_out(there: dict[str, Any]) -> None:
    there["attachmentmessageid"] = Unreachable("no host")
    with pytest.raises(Retryable):
        used_tables.used(Settings(), ALL)
