"""Why we read at James's own level: a model of Cassandra's Paxos over two data centres.

A serial read is a round of Paxos: it prepares with a new ballot, and if an accepted proposal is
found that is newer than the newest commit, it is proposed and committed anew, with *that* ballot.
SERIAL asks a majority of all replicas, LOCAL_SERIAL one of those in its data centre. A read at a
narrower level than the writes may so complete a change that the writes have superseded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

PARIS, ROME = ("a1", "a2", "a3"), ("b1", "b2", "b3")
EVERYWHERE = (*PARIS, *ROME)


@dataclass(frozen=True)
class Proposal:
    """A value under a ballot, which becomes the cells' write time."""

    ballot: int
    value: str


NOTHING = Proposal(0, "")


@dataclass
class Replica:
    """What one replica has promised, accepted and committed."""

    promised: int = 0
    accepted: Proposal = NOTHING
    committed: Proposal = NOTHING

    def promise(self, ballot: int) -> bool:
        if ballot <= self.promised:
            return False
        self.promised = ballot
        return True

    def accept(self, proposal: Proposal) -> bool:
        if proposal.ballot < self.promised:
            return False
        self.accepted = proposal
        return True

    def commit(self, proposal: Proposal) -> None:
        """The newest write time wins, as of any cell."""
        self.committed = max(self.committed, proposal, key=lambda each: each.ballot)
        if self.accepted.ballot <= proposal.ballot:
            self.accepted = NOTHING


@dataclass
class Partition:
    """The replicas of one partition of the truth."""

    replicas: dict[str, Replica] = field(
        default_factory=lambda: {name: Replica() for name in EVERYWHERE}
    )

    def of(self, names: Iterable[str]) -> list[Replica]:
        return [self.replicas[name] for name in names]

    def change(self, proposal: Proposal, asked: Sequence[str], accepted_by: Sequence[str]) -> bool:
        """A user's lightweight transaction; it is acknowledged if a majority has accepted it."""
        promised = [each for each in self.of(asked) if each.promise(proposal.ballot)]
        if len(promised) < majority(EVERYWHERE):
            return False
        for replica in promised:  # what was accepted and not committed comes first
            if replica.accepted.ballot > newest(promised).ballot:
                return False
        took = [each for each in self.of(accepted_by) if each.accept(proposal)]
        if len(took) < majority(EVERYWHERE):
            return False
        for replica in took:
            replica.commit(proposal)
        return True

    def read(self, ballot: int, asked: Sequence[str], all_of_them: Sequence[str]) -> str:
        """A serial read among some replicas; ``asked`` are those that answer."""
        replicas = [each for each in self.of(asked) if each.promise(ballot)]
        assert len(replicas) >= majority(all_of_them)
        unfinished = max((each.accepted for each in replicas), key=lambda each: each.ballot)
        if unfinished.ballot > newest(replicas).ballot:
            again = replace(unfinished, ballot=ballot)
            for replica in self.of(all_of_them):
                replica.commit(again)
            return again.value
        return newest(replicas).value

    def value(self) -> str:
        """What a read of all replicas gives, now that every commit has arrived everywhere."""
        return newest(self.of(EVERYWHERE)).value


def newest(replicas: Iterable[Replica]) -> Proposal:
    return max((each.committed for each in replicas), key=lambda each: each.ballot)


def majority(replicas: Sequence[str]) -> int:
    return len(replicas) // 2 + 1


def superseded() -> Partition:
    """Change A was accepted by one replica and failed; B was acknowledged by a majority."""
    partition = Partition()
    assert not partition.change(Proposal(10, "A"), EVERYWHERE, ["a1"])
    others = ("a3", *ROME)
    assert partition.change(Proposal(20, "B"), others, others)
    return partition


def test_a_serial_read_leaves_the_change_that_was_acknowledged() -> None:
    for asked in combinations(EVERYWHERE, majority(EVERYWHERE)):
        partition = superseded()
        assert partition.read(30, asked, EVERYWHERE) == "B"
        assert partition.value() == "B"


def test_a_local_serial_read_may_undo_it() -> None:
    """Which is why a local data centre chooses nodes, and no level."""
    partition = superseded()
    assert partition.read(30, ["a1", "a2"], PARIS) == "A"
    assert partition.value() == "A"


@pytest.mark.parametrize("asked", list(combinations(PARIS, 2)))
def test_where_james_is_local_too_a_local_read_undoes_nothing(asked: tuple[str, str]) -> None:
    """His levels and ours are the same: then a majority of the one meets one of the other."""
    partition = Partition()
    for replica in partition.of(PARIS):
        replica.promise(10)
    partition.replicas["a1"].accept(Proposal(10, "A"))
    for replica in partition.of(("a2", "a3")):
        assert replica.promise(20)
        assert replica.accept(Proposal(20, "B"))
        replica.commit(Proposal(20, "B"))
    assert partition.read(30, asked, PARIS) == "B"
    assert newest(partition.of(PARIS)).value == "B"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(combinations(EVERYWHERE, 4))),
            st.sampled_from(list(combinations(EVERYWHERE, 4))),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_serial_reads_undo_nothing_in_any_order(
    steps: list[tuple[tuple[str, ...], tuple[str, ...], bool]],
) -> None:
    """Whoever answers: what was acknowledged last stays."""
    partition, acknowledged = Partition(), ""
    for number, (asked, answering, reads) in enumerate(steps):
        ballot = 10 * (number + 1)
        before = {name: replica.accepted for name, replica in partition.replicas.items()}
        if reads:
            found = partition.read(ballot, asked, EVERYWHERE)
            unfinished = {each.value for each in before.values()}
            assert found == acknowledged or found in unfinished
            acknowledged = found
        elif partition.change(Proposal(ballot, str(number)), asked, answering):
            acknowledged = str(number)
    assert partition.value() == acknowledged
