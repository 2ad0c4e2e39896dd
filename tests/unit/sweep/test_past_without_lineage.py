"""Rows of the past in a family without lineage: their content decides, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from reconcilers.words.model import KeyValue, Kind, Suspect
from streaming.again.past import PastRows, SiftedRows
from streaming.steps.accepted_together import AcceptedTogether
from streaming.steps.confirm import Confirmer
from streaming.steps.contents import Contents
from streaming.steps.examine import Examiner
from tests.builders.attachments import LISTING, REFERENCES, reference, reference_place
from tests.builders.examining import RULES
from tests.builders.rows import DELAY, LONG_AGO, NOW
from tests.fakes.checkpoints.lost_rows import MemoryLostRows
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables

FEW, MANY = 3, 40


class Reads:
    """Content of some messages; nobody owns anything."""

    def __init__(self, kept: Collection[KeyValue]) -> None:
        self.kept = kept

    def having_content(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        return [each for each in sources if each in self.kept]

    def having_owner(self, sources: Sequence[KeyValue]) -> Collection[KeyValue]:
        return []

    def having_user(self, things: Sequence[KeyValue]) -> Collection[KeyValue]:
        return []


def message(number: int) -> str:
    return f"22222222-0000-1000-8000-{number:012}"


def sifted(kept: Collection[KeyValue]) -> SiftedRows:
    """References of messages that list nothing; ``kept`` have content."""
    tables, journal, lost_rows = MemoryTables(), MemoryJournal(lambda: NOW), MemoryLostRows()
    rows = tables.rows.setdefault(LISTING.name, {})
    suspects = []
    for number in range(MANY):
        slot = reference_place(message=message(number))
        rows[slot] = reference(message=message(number))
        source = REFERENCES.named_by(slot)
        suspects.append(Suspect(slot, source, Kind.EXTRA_ROW, LISTING.name, LONG_AGO))
    contents = Contents(REFERENCES, tables, Reads(kept), DELAY)
    confirmer = Confirmer(REFERENCES, LISTING, tables, MemoryLineage(), DELAY, contents)
    together = AcceptedTogether(REFERENCES, journal, lost_rows)
    examiner = Examiner(
        LISTING, tables, confirmer, journal, lambda _: None, lambda: NOW, RULES, together
    )
    return PastRows(examiner, tables, lost_rows, FEW).sift(suspects, NOW)


def test_references_of_messages_that_are_gone_everywhere_are_handed_over() -> None:
    found = sifted(kept=())
    assert len(found.handed_over) == MANY
    assert found.left == {}


def test_those_of_messages_that_lost_their_list_alone_are_left_together() -> None:
    found = sifted(kept=[UUID(message(number)) for number in range(MANY)])
    assert found.handed_over == []
    assert sum(each.rows for each in found.left.values()) == MANY
