"""Two snapshots of nodes to the work between them, and what of it lightweight transactions cost."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.lwt.cost import PAXOS, Cost, cost_of, sentence
from reconcilers.lwt.placement import Placement, Range, exactly
from reconcilers.lwt.statements import (
    BY_JMX,
    Compaction,
    Counts,
    Gauges,
    Metric,
    NodeSnapshot,
    Table,
    Work,
    between,
    together,
)

MAIL: Table = ("james", "imapuidtable")
LIST: Table = ("james", "messageidtable")
JMX = {Metric.CAS_READS: 0, Metric.CAS_WRITES: 0, Metric.REFUSED: 0}


def snapshot(
    tables: Mapping[Table, Counts], whole: Counts = JMX, started: int = 1, node: str = "n1"
) -> NodeSnapshot:
    return NodeSnapshot(node, started, tables, whole, {}, {})


def phases(prepares: int, commits: int = 0) -> Counts:
    """Of one table with one copy of each row: every round proposes."""
    return {Metric.PREPARES: prepares, Metric.PROPOSALS: prepares, Metric.COMMITS: commits}


ONE_NODE = Placement({"n1": "dc1"}, {})


def cost(tables: Mapping[Table, Counts], whole: Counts = JMX) -> Cost:
    work = between(snapshot({}), snapshot(tables, {**JMX, **whole}))
    return cost_of(work, ONE_NODE, 60.0)


# --- what lies between two snapshots


def test_what_was_done_before_the_interval_does_not_count() -> None:
    first = snapshot({MAIL: {Metric.READS: 10, Metric.WRITES: 3}})
    second = snapshot({MAIL: {Metric.READS: 17, Metric.WRITES: 3}, LIST: {Metric.READS: 2}})
    work = between(first, second)
    assert work.tables == {MAIL: {Metric.READS: 7, Metric.WRITES: 0}, LIST: {Metric.READS: 2}}
    assert not work.gaps


def test_of_a_node_that_was_started_again_all_counts_and_it_is_said() -> None:
    first = snapshot({MAIL: {Metric.READS: 10}}, {**JMX, Metric.CAS_READS: 4})
    second = snapshot({MAIL: {Metric.READS: 12}}, {**JMX, Metric.CAS_READS: 5}, started=2)
    work = between(first, second)
    assert work.tables[MAIL] == {Metric.READS: 12}
    assert work.whole[Metric.CAS_READS] == 5
    assert work.gaps == ("n1 was started again: what it did before that is not counted",)


def test_a_table_that_was_made_anew_counts_from_its_making() -> None:
    first = snapshot({MAIL: {Metric.READS: 10, Metric.WRITES: 1}})
    second = snapshot({MAIL: {Metric.READS: 4, Metric.WRITES: 5}})
    assert between(first, second).tables[MAIL] == {Metric.READS: 4, Metric.WRITES: 5}


@pytest.mark.parametrize("silent", ["before", "after"])
def test_lightweight_transactions_are_not_guessed_from_one_answer(silent: str) -> None:
    told = snapshot({MAIL: {Metric.READS: 5, **phases(3)}})
    untold = snapshot({MAIL: {Metric.READS: 5}}, {})
    pair = (untold, told) if silent == "before" else (told, untold)
    work = between(*pair)
    assert not work.told_lwt
    assert not work.whole
    assert not BY_JMX & work.tables[MAIL].keys()


def test_a_compaction_counts_once_when_it_is_new() -> None:
    old, new = UUID(int=1), UUID(int=2)
    done = Compaction(PAXOS, 100, 60)
    first = replace(snapshot({}), compactions={old: done})
    second = replace(snapshot({}), compactions={old: done, new: done})
    assert between(first, second).tables == {
        PAXOS: {Metric.COMPACTIONS: 1, Metric.COMPACTED_IN: 100, Metric.COMPACTED_OUT: 60}
    }


def test_several_nodes_are_added_and_the_slowest_is_shown() -> None:
    shown = [Gauges(1.0, 9.0, 3), Gauges(None, 8.0, 4)]
    works = [
        between(
            snapshot({}, node=node),
            replace(snapshot({MAIL: phases(2, 1)}, node=node), gauges={MAIL: gauges}),
        )
        for node, gauges in zip(("n1", "n2"), shown, strict=True)
    ]
    work = together(works, ["n3 is left out: it does not answer"])
    assert work.nodes == {"n1", "n2"}
    assert work.tables[MAIL][Metric.PREPARES] == 4
    assert work.gauges[MAIL] == Gauges(1.0, 9.0, 7)
    assert work.gaps == ("n3 is left out: it does not answer",)


COUNTS = st.dictionaries(st.sampled_from(list(Metric)), st.integers(0, 1000))
TABLES = st.dictionaries(st.sampled_from([MAIL, LIST, PAXOS]), COUNTS)


@given(TABLES, TABLES)
def test_what_is_done_after_a_snapshot_is_what_is_found(
    base: dict[Table, Counts], done: dict[Table, Counts]
) -> None:
    """Whatever was counted before, the increments come back; nothing is negative."""
    names = base.keys() | done.keys()
    after = {
        name: {
            metric: base.get(name, {}).get(metric, 0) + done.get(name, {}).get(metric, 0)
            for metric in base.get(name, {}).keys() | done.get(name, {}).keys()
        }
        for name in names
    }
    found = between(snapshot(base), snapshot(after)).tables
    for name in names:
        assert {m: n for m, n in found[name].items() if n} == {
            m: n for m, n in done.get(name, {}).items() if n
        }


@given(TABLES, TABLES, st.integers(1, 2))
def test_no_count_is_negative_whatever_happened(
    first: dict[Table, Counts], second: dict[Table, Counts], started: int
) -> None:
    work = between(snapshot(first), snapshot(second, started=started))
    assert all(n >= 0 for counts in work.tables.values() for n in counts.values())


# --- what it cost


def test_one_table_alone_has_exact_numbers() -> None:
    whole = {Metric.CAS_READS: 5, Metric.CAS_WRITES: 10, Metric.REFUSED: 3}
    asked = {Metric.ASKED_READS: 15 + 8, Metric.ASKED_WRITES: 4}
    (mail,) = cost({MAIL: {**phases(15, 7), **asked}}, whole).tables
    assert (mail.changed, mail.unchanged) == (exactly(7), exactly(8))
    assert (mail.serial_reads, mail.refused) == (Range(5, 5), Range(3, 3))
    assert (mail.ordinary_reads, mail.ordinary_writes) == (exactly(8), 4)
    assert mail.serial_reads.text == "5"


def test_of_two_tables_it_is_said_how_far_it_is_known() -> None:
    whole = {Metric.CAS_READS: 6, Metric.REFUSED: 2}
    found = {each.table: each for each in cost({MAIL: phases(5), LIST: phases(3)}, whole).tables}
    assert (found[MAIL].serial_reads, found[MAIL].refused) == (Range(3, 5), Range(0, 2))
    assert (found[LIST].serial_reads, found[LIST].refused) == (Range(1, 3), Range(0, 2))
    assert found[MAIL].serial_reads.text == "3–5"


@given(st.lists(st.tuples(*[st.integers(0, 20)] * 4), min_size=1, max_size=4), st.integers(1, 3))
def test_a_range_holds_what_happened(
    happened: list[tuple[int, int, int, int]], copies: int
) -> None:
    """By table: serial reads, refusals, changes, and rounds that were lost to others."""
    tables = {
        ("james", f"t{n}"): phases(reads + refused + changed + lost, changed)
        for n, (reads, refused, changed, lost) in enumerate(happened)
    }
    whole = {
        Metric.CAS_READS: sum(each[0] for each in happened),
        Metric.REFUSED: sum(each[1] for each in happened),
    }
    nodes = [f"n{number}" for number in range(copies)]
    works = [
        between(
            snapshot({}, node=node),
            snapshot(tables, {**JMX, **(whole if node == "n0" else {})}, node=node),
        )
        for node in nodes
    ]
    placement = Placement(dict.fromkeys(nodes, "dc1"), {"james": {"dc1": copies}})
    for each in cost_of(together(works), placement, 60.0).tables:
        reads, refused, changed, lost = happened[int(each.table[1][1:])]
        assert each.changed == exactly(changed)
        assert each.unchanged == exactly(reads + refused + lost)
        assert each.serial_reads.low <= reads <= each.serial_reads.high
        assert each.refused.low <= refused <= each.refused.high


def test_shares_are_of_all_tables_of_all_keyspaces() -> None:
    report = cost(
        {
            PAXOS: {Metric.READS: 30, Metric.WRITES: 60},
            MAIL: {Metric.READS: 20, Metric.SCANS: 10, Metric.WRITES: 20, **phases(9, 3)},
            ("other", "t"): {Metric.WRITES: 20, **phases(1)},
        }
    )
    assert report.shares["reads"].part == 0.5
    assert report.shares["writes"].part == 0.6
    assert report.shares["compactions"].part is None
    assert sentence(report, "james") == (
        "Lightweight transactions and serial reads caused 50% of this cluster's reads and 60% of"
        " this cluster's writes in 60 s (system.paxos alone), by table: imapuidtable 91%,"
        " other.t 9%."
    )


def test_without_any_the_sentence_says_so() -> None:
    assert sentence(cost({MAIL: {Metric.READS: 3}}), "james") == (
        "No lightweight transaction and no serial read ran in 60 s."
    )


def test_without_jmx_the_sentence_tells_the_share_and_what_is_missing() -> None:
    work = between(snapshot({}, {}), snapshot({PAXOS: {Metric.WRITES: 1}, MAIL: {}}, {}))
    told = sentence(cost_of(work, ONE_NODE, 60.0), "james")
    assert told.startswith("system.paxos took 100% of this cluster's writes in 60 s")
    assert told.endswith("by which tables is not known, for no node was asked over JMX.")


def test_where_only_some_nodes_told_the_sentence_says_how_many() -> None:
    one = between(snapshot({}), snapshot({MAIL: phases(2, 1), PAXOS: {Metric.WRITES: 1}}))
    other = between(snapshot({}, {}, node="n2"), snapshot({}, {}, node="n2"))
    work: Work = together([one, other])
    assert sentence(cost_of(work, ONE_NODE, 1.0), "james").endswith(", as told by 1 of 2 nodes.")
