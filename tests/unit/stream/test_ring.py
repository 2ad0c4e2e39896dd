"""Whether the ring is at rest, as the node that is asked tells of itself and of the others."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra import Unauthorized
from cassandra.cluster import Session

from streaming.tables.ring import Ring

SELF = {"status": "NORMAL,-1", "status_with_port": "NORMAL,-1"}


def other(told: str | None, status: str | None = None) -> dict[str, str | None]:
    """Another node: of those a node keeps only what they tell in the new way."""
    return {"status": status, "status_with_port": told}


class OneCoordinator:
    """A session; ``answer`` are the rows of gossip_info, or an error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.cluster = SimpleNamespace(metadata=SimpleNamespace(token_map=None))

    def execute(self, query: str) -> Any:
        assert "system_views.gossip_info" in query
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("rows", "steady"),
    [
        ([SELF], True),
        ([SELF, other("NORMAL,-5")], True),
        ([SELF, other("BOOT,-5")], False),
        ([SELF, other("BOOT_REPLACE,10.0.0.1:7000")], False),
        ([SELF, other("LEAVING,9")], False),
        ([SELF, other("MOVING,9")], False),
        ([SELF, other("LEFT,9,1700000000")], True),
        ([SELF, other("shutdown,true")], True),
        ([SELF, other(None)], True),
        ([SELF, other(None, status="BOOT,-5")], False),  # a node of a version before 4
    ],
)
def test_no_node_joins_leaves_or_moves(rows: list[dict[str, str | None]], steady: bool) -> None:
    assert Ring(cast(Session, OneCoordinator(rows)), "canaries").steady() is steady


def test_where_no_node_may_tell_the_ring_counts_as_steady() -> None:
    refused = OneCoordinator(Unauthorized("no SELECT"))
    assert Ring(cast(Session, refused), "canaries").steady()


def test_where_no_node_answers_it_does_not() -> None:
    assert not Ring(cast(Session, OneCoordinator(OSError("gone"))), "canaries").steady()
