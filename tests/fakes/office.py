"""The desk of a person who decides on findings, over a journal in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot, Wake
from streaming.commands.arguments.finding_filter import FindingFilter
from streaming.commands.person.decisions import Decision, Desk
from streaming.commands.person.orders import Orders
from tests.contract.making import a_finding, a_slot
from tests.fakes.checkpoints.memory import MemoryJournal

NOW: Micros = 1_800_000_000_000_000
ANA = Orders("ana", "a test", clock=lambda: NOW)
EACH = FindingFilter()


@dataclass
class Office:
    """What is decided there is in the journal; what is published, with its family."""

    journal: MemoryJournal = field(default_factory=lambda: MemoryJournal(lambda: NOW))
    published: list[tuple[str, Wake]] = field(default_factory=list)

    def put(self, kind: Kind, state: State) -> Slot:
        """Where a new finding is open."""
        slot = a_slot()
        self.journal.put(a_finding(MESSAGE, slot, kind=kind, state=state, accepted=frozenset()))
        return slot

    def found(self, slot: Slot) -> Finding:
        """What is open there."""
        return self.journal.recall(MESSAGE, "messages", [slot])[slot]

    def deciding(self, orders: Orders = ANA) -> Desk:
        return Desk(self.journal, self.publish, lambda: NOW, orders)

    def decide(self, decision: Decision, *slots: Slot, wanted: FindingFilter = EACH) -> int:
        """On these keys, or on all where none is named; answers as the command ends."""
        keys = frozenset(map(text_of, slots)) or None
        return self.deciding().decide(decision, keys, wanted)

    def publish(self, family: Family, wakes: Iterable[Wake]) -> None:
        self.published += [(family.name, wake) for wake in wakes]
