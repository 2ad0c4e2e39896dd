"""How many operations are behind what the nodes that answered have counted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconcilers.lwt.cost import TableWork, cost_of
from reconcilers.lwt.placement import ANYWHERE, Placement, Range, Reach, exactly
from reconcilers.lwt.statements import Counts, Metric, NodeSnapshot, Table, between, together

MAIL: Table = ("james", "imapuidtable")
JMX = {Metric.CAS_READS: 0, Metric.CAS_WRITES: 0, Metric.REFUSED: 0}
THREE = Placement(dict.fromkeys(("n1", "n2", "n3"), "one"), {"james": {"one": 3}})
FIVE = Placement(dict.fromkeys(("n1", "n2", "n3", "n4", "n5"), "one"), {"james": {"one": 3}})
TWO_CENTRES = {"n1": "one", "n2": "one", "n3": "two", "n4": "two"}
COPIES = {"james": {"one": 2, "two": 2}}


def snapshot(node: str, tables: Mapping[Table, Counts]) -> NodeSnapshot:
    return NodeSnapshot(node, 1, tables, JMX, {}, {})


def phases(prepares: int, commits: int) -> Counts:
    return {Metric.PREPARES: prepares, Metric.PROPOSALS: prepares, Metric.COMMITS: commits}


def told(placement: Placement, counted: Mapping[str, Counts]) -> TableWork:
    """What the report has of one table, by what each node that answered has counted."""
    nodes = counted.items()
    works = [between(snapshot(node, {}), snapshot(node, {MAIL: each})) for node, each in nodes]
    (found,) = cost_of(together(works), placement, 60.0).tables
    return found


def test_a_node_that_is_left_out_of_three_with_three_copies_changes_nothing() -> None:
    counted = dict.fromkeys(("n1", "n2"), phases(1000, 600))
    found = told(THREE, counted)
    assert (found.rounds, found.changed, found.unchanged) == (
        exactly(1000),
        exactly(600),
        exactly(400),
    )


def test_where_rows_may_have_fewer_copies_on_the_others_it_is_a_range() -> None:
    """Of 1,000 operations each of five nodes prepares 600."""
    assert told(FIVE, dict.fromkeys(FIVE.centres, phases(600, 0))).rounds == exactly(1000)
    counted = dict.fromkeys(("n1", "n2", "n3", "n4"), phases(600, 0))
    assert told(FIVE, counted).rounds == Range(800, 1200)


def test_an_operation_with_no_copy_on_the_others_is_not_in_the_number() -> None:
    assert told(FIVE, {"n1": phases(600, 0)}).rounds == exactly(600)


@pytest.mark.parametrize("reach", Reach)
def test_at_local_serial_one_data_centre_prepares_and_all_commit(reach: Reach) -> None:
    """Whatever is known of the level: the other one has prepared nothing."""
    counted = {
        node: phases(1000 if centre == "one" else 0, 1000) for node, centre in TWO_CENTRES.items()
    }
    found = told(Placement(TWO_CENTRES, COPIES, reach), counted)
    assert (found.rounds, found.changed) == (exactly(1000), exactly(1000))


@pytest.mark.parametrize(
    ("reach", "rounds"),
    [(Reach.ALL, exactly(500)), (Reach.ONE, exactly(1000)), (Reach.UNKNOWN, Range(500, 1000))],
)
def test_where_both_prepare_the_level_says_whether_it_was_for_one_operation(
    reach: Reach, rounds: Range
) -> None:
    counted = dict.fromkeys(TWO_CENTRES, phases(500, 0))
    assert told(Placement(TWO_CENTRES, COPIES, reach), counted).rounds == rounds


def test_copies_that_no_data_centre_has_are_on_all_nodes() -> None:
    placement = Placement(TWO_CENTRES, {"james": {ANYWHERE: 3}}, Reach.UNKNOWN)
    assert told(placement, dict.fromkeys(TWO_CENTRES, phases(750, 0))).rounds == exactly(1000)


def test_serial_reads_of_a_client_of_a_node_that_is_left_out_are_within_the_range() -> None:
    """That node counted them; the others only know that a round changed nothing."""
    works = [
        between(snapshot("n1", {}), snapshot("n1", {MAIL: phases(9, 0)})),
        between(NodeSnapshot("n2", 1, {}, {}, {}, {}), NodeSnapshot("n2", 1, {}, {}, {}, {})),
    ]
    placement = Placement({"n1": "one", "n2": "one"}, {"james": {"one": 2}})
    (found,) = cost_of(together(works), placement, 60.0).tables
    assert found.serial_reads == Range(0, 9)
