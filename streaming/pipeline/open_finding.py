"""An open finding as the driver keeps it in memory, hundreds of thousands at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from uuid import UUID

from reconcilers.counters.open_message import OpenMessage, Standing, message_at, standing_of
from reconcilers.declared.family import Family
from reconcilers.rows.decision import OF_MANY_ROWS
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Slot, Wake, look_again
from reconcilers.words.waiting import Wait

UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Condition:
    """What many findings have in common; each combination exists once.

    ``wait`` is None unless the finding is held or observed. ``unwritten``: no repair was sent yet,
    and neither a person nor a breaker has let one through.
    """

    kind: Kind
    state: State
    wait: Wait | None
    standing: Standing
    unwritten: bool


@dataclass(frozen=True, slots=True, eq=False)
class OpenFinding:
    """The parts of a finding that each slice needs; its sentence and rows stay in the journal.

    ``sources`` are the ids of its sources, as far as they are UUIDs, 16 bytes each. Times are µs.
    Two are equal only if they are the same object.
    """

    projection: str
    slot: Slot
    condition: Condition
    next_look: Micros | None
    oldest: Micros | None
    found_at: Micros
    sources: bytes

    @property
    def kind(self) -> Kind:
        """The kind of the difference."""
        return self.condition.kind

    @property
    def state(self) -> State:
        """The state of the finding."""
        return self.condition.state

    @property
    def wait(self) -> Wait | None:
        """What the finding waits for, None unless it is held or observed."""
        return self.condition.wait

    @property
    def is_of_a_row(self) -> bool:
        """Whether it has a key to look at; a finding of a table or of many rows has none."""
        return self.slot != WHOLE_TABLE and self.kind not in OF_MANY_ROWS

    @property
    def is_counted_apart(self) -> bool:
        """Whether counters must read both sides of its message: not if both sides are equal."""
        return self.is_of_a_row and self.kind is not Kind.INCOMPLETE_IN_BOTH

    @property
    def is_paced(self) -> bool:
        """Whether it comes back at a pace; what the ceiling holds has its own pace."""
        return self.wait not in {None, Wait.CEILING}

    def wake(self, family: Family) -> Wake:
        """The key of the finding, to publish and look at again.

        It names the source if neither lineage nor the key itself does.
        """
        is_known = family.remembered or family.is_source_in_key
        source = None if is_known else next(iter(self.uuids), None)
        return look_again(self.slot, self.projection, source, self.oldest)

    @property
    def uuids(self) -> tuple[UUID, ...]:
        """The UUIDs of its sources."""
        places = range(0, len(self.sources), UUID_BYTES)
        return tuple(UUID(bytes=self.sources[at : at + UUID_BYTES]) for at in places)

    @property
    def message(self) -> OpenMessage | None:
        """The message as counters need it; None if the slot is not a mailbox's UID."""
        if not self.is_of_a_row:
            return None
        return message_at(self.slot, self.uuids, self.kind, self.condition.standing)

    def __lt__(self, other: OpenFinding) -> bool:
        """Whether it is due before the other one."""
        return (self.next_look or 0) < (other.next_look or 0)


def opened(finding: Finding) -> OpenFinding:
    """What the driver keeps of a finding."""
    wait = finding.wait
    untried = not finding.attempts and not finding.accepted
    condition = Condition(
        kind=finding.kind,
        state=finding.state,
        wait=wait,
        standing=standing_of(finding),
        unwritten=untried and wait not in {None, Wait.CEILING},
    )
    return OpenFinding(
        finding.projection,
        finding.slot,
        _the_one(condition),
        finding.next_look,
        finding.oldest,
        finding.found_at,
        _packed(finding.sources),
    )


@cache
def _the_one(condition: Condition) -> Condition:
    """The same object for equal conditions; there are few."""
    return condition


def _packed(sources: tuple[str, ...]) -> bytes:
    packed = bytearray()
    for text in sources:
        try:
            packed += UUID(text).bytes
        except ValueError:
            continue  # a family may have other sources
    return bytes(packed)


def finding_wake(family: Family, finding: Finding) -> Wake:
    """The key of a finding, to publish and look at again."""
    return opened(finding).wake(family)
