"""`reconcile lwt-report`: what it shows, and what it says where something is not known."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.lwt.cost import PAXOS, cost_of
from reconcilers.lwt.placement import Placement
from reconcilers.lwt.statements import Counts, Gauges, Metric, NodeSnapshot, Table
from reconcilers.words.errors import Unreachable
from streaming import app
from streaming.commands.lwt.beans import JmxLogin, NodeBeans
from streaming.commands.lwt.own_reads import newly_confirmed, suspects_confirmed
from streaming.commands.lwt.report import AskNode, Beans, Reader, asking, measured
from streaming.commands.lwt.report_shown import Shown, as_json, as_text
from streaming.monitoring.endpoint import serve
from streaming.monitoring.metrics import Metrics
from streaming.settings import CassandraSettings, MetricsSettings
from streaming.tables.node_metrics import NodeCounts

MAIL: Table = ("james", "imapuidtable")
LEASE: Table = ("reconciler", "lease")
OTHER: Table = ("elsewhere", "t")
ONE_NODE = Placement({"n1": "dc1"}, {})
SHOWN = Shown("james", frozenset({"imapuidtable", "modseq", "x"}), "reconciler", "v1")
NOTHING = dict.fromkeys(
    (
        Metric.CAS_READS,
        Metric.CAS_READ_MICROS,
        Metric.CAS_WRITES,
        Metric.CAS_WRITE_MICROS,
        Metric.REFUSED,
        Metric.CONTENDED_READS,
        Metric.CONTENDED_WRITES,
        Metric.UNFINISHED,
        Metric.TIMEOUTS,
        Metric.CPU_NANOS,
    ),
    0,
)
DONE: Mapping[Table, Counts] = {
    MAIL: {
        Metric.PREPARES: 30,
        Metric.PREPARE_MICROS: 6_000,
        Metric.PROPOSALS: 30,
        Metric.COMMITS: 20,
        Metric.ASKED_READS: 34,
        Metric.ASKED_WRITES: 5,
    },
    LEASE: {Metric.PREPARES: 10, Metric.PROPOSALS: 10, Metric.COMMITS: 10},
    OTHER: {Metric.READS: 7},
    PAXOS: {Metric.READS: 3, Metric.WRITES: 100},
}


def node(
    name: str, tables: Mapping[Table, Counts], whole: Counts = NOTHING, started: int = 1
) -> NodeSnapshot:
    return NodeSnapshot(name, started, tables, whole, {}, {MAIL: Gauges(1.5, 2.5, 1)})


def shown_lines() -> list[str]:
    whole = {**NOTHING, Metric.CAS_READS: 6, Metric.CAS_WRITES: 34, Metric.REFUSED: 4}
    work = measured({"n1": node("n1", {})}, {"n1": node("n1", DONE, whole)})
    return list(as_text(cost_of(work, ONE_NODE, 60.0), SHOWN))


def test_a_line_a_table_with_what_is_known_of_it() -> None:
    lines = shown_lines()
    (mail,) = (line for line in lines if line.startswith("imapuidtable"))
    assert mail.split()[2:] == (
        ["30", "20", "6", "4", "0.20", "0.00", "0.00", "73%", "4", "1.50", "5", "2.50"]
    )
    assert not any(line.startswith("elsewhere") for line in lines), "nobody else's plain tables"
    assert "our own keyspace reconciler: 27% of all phases" in lines
    assert lines[-1].endswith("by table: imapuidtable 73%, reconciler.lease 27%.")


def test_truths_are_listed_by_whether_they_have_any() -> None:
    lines = shown_lines()
    assert "truth tables with lightweight transactions in this interval: imapuidtable" in lines
    assert "truth tables with lightweight transactions none: modseq" in lines


def test_json_has_the_same_and_the_replicas_counts() -> None:
    work = measured({"n1": node("n1", {})}, {"n1": node("n1", DONE)})
    told = as_json(cost_of(work, ONE_NODE, 60.0), SHOWN)
    assert told["tables"]["james.imapuidtable"]["prepares"] == 30
    assert told["tables"]["james.imapuidtable"]["applied"] == [20, 20]
    assert told["paxos"]["writes"] == {"paxos": 100, "all": 100, "share": 1.0}
    assert told["sentence"] == shown_lines()[-1]


def test_a_node_that_did_not_tell_both_times_is_left_out_with_a_line() -> None:
    before: dict[str, NodeSnapshot | str] = {
        "n1": node("n1", {}),
        "n2": "n2 is left out: away",
        "n3": node("n3", {}),
    }
    after = {"n1": node("n1", DONE), "n2": node("n2", DONE), "n4": node("n4", DONE)}
    work = measured(before, after)
    assert work.nodes == {"n1"}
    assert work.gaps == (
        "n2 is left out: away",
        "n3 is left out: it was not there all the time",
        "n4 is left out: it was not there all the time",
    )


def test_without_any_node_it_fails_in_one_line() -> None:
    with pytest.raises(Unreachable, match="n1 is left out: away"):
        measured({"n1": node("n1", {})}, {"n1": "n1 is left out: away"})


# --- a connection that a restart has cut


class CutOnce:
    """Metrics of one node, that answers when it is asked so often."""

    def __init__(self, times: int) -> None:
        self.left = times

    def addresses(self) -> dict[str, str]:
        return {"id1": "10.0.0.1"}

    def of(self, node: str) -> NodeCounts:
        self.left -= 1
        if self.left:
            raise Unreachable("ConnectionShutdown")
        return NodeCounts(node, "id1", 1, {MAIL: {Metric.READS: 7}}, {MAIL: 3}, {})


def reader(times: int, patience: float) -> Reader:
    metrics: Any = CutOnce(times)
    return Reader(metrics, Beans(jmx({}), CassandraSettings(), []), None, patience)


def test_a_node_whose_connection_was_cut_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    found = reader(3, patience=60).snapshots()["10.0.0.1"]
    assert isinstance(found, NodeSnapshot)
    assert (found.tables, found.gauges) == ({MAIL: {Metric.READS: 7}}, {MAIL: Gauges(disk=3)})


def test_but_not_for_ever() -> None:
    with pytest.raises(Unreachable, match="left out: ConnectionShutdown"):
        reader(3, patience=0).snapshots()


# --- who is asked over JMX, and who answers

IDS = {"id1": "10.0.0.1", "id2": "10.0.0.2"}


def jmx(answers: Mapping[str, str]) -> AskNode:
    """Nodes by the place where they answer; nobody does elsewhere."""

    def ask(login: JmxLogin) -> NodeBeans:
        if login.place not in answers:
            raise Unreachable(f"nobody at {login.place}")
        return NodeBeans(answers[login.place], {}, NOTHING)

    return ask


def test_each_node_is_asked_at_its_own_address() -> None:
    beans = Beans(jmx({"10.0.0.1:7199": "id1"}), CassandraSettings(), [])
    told, silent = beans.read(IDS)
    assert set(told) == {"id1"}
    assert silent == {"id2": "nobody at 10.0.0.2:7199"}


def test_of_places_that_are_named_it_is_the_node_that_says_who_it_is() -> None:
    ask = jmx({"127.0.0.1:1": "id2", "::1:2": "stranger"})
    told, silent = Beans(ask, CassandraSettings(), ["127.0.0.1:1", "[::1]:2"]).read(IDS)
    assert told.keys() >= {"id2"}
    assert silent == {"id1": "no --jmx is of this node"}


def test_without_java_each_node_says_why_it_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with asking(1.0) as ask:
        told, silent = Beans(ask, CassandraSettings(), []).read(IDS)
    assert told == {}
    assert all("install Java 17" in why for why in silent.values())


@pytest.mark.parametrize("wrong", ["nowhere", ":7199", "host:", "host:port", "host:70000"])
def test_a_wrong_place_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app.main(["lwt-report", "--jmx", wrong])
    assert "is no place as 10.0.0.1:7199" in capsys.readouterr().err


def test_the_parser_takes_what_the_page_names() -> None:
    given = app.parsed(
        ["lwt-report", "--interval", "5m", "--watch", "--format", "jsonl", "--jmx", "[::1]:7199"]
    )
    assert (given.interval, given.watch, given.format, given.jmx) == (
        300_000_000,
        True,
        "jsonl",
        ["[::1]:7199"],
    )


# --- our own stream


def test_what_our_own_stream_confirmed_is_read_from_its_metrics() -> None:
    metrics = Metrics(CollectorRegistry())
    port = serve(metrics, MetricsSettings(port=0))
    metrics.suspects.labels("message").inc(3)
    metrics.suspects.labels("other").inc(4)
    assert suspects_confirmed(MetricsSettings(host="0.0.0.0", port=port)) == 7
    assert suspects_confirmed(MetricsSettings(port=1)) is None


@pytest.mark.parametrize(
    ("before", "after", "between"), [(3, 10, 7), (10, 3, 3), (None, 3, None), (3, None, None)]
)
def test_a_stream_that_began_anew_counts_from_then_on(
    before: int | None, after: int | None, between: int | None
) -> None:
    assert newly_confirmed(before, after) == between


def test_it_is_shown_what_our_own_stream_confirmed() -> None:
    work = measured({"n1": node("n1", {})}, {"n1": node("n1", DONE)})
    cost = replace(cost_of(work, ONE_NODE, 60.0), confirmed=1200)
    assert "our own stream: 1,200 suspects confirmed, mostly one serial read each" in as_text(
        cost, SHOWN
    )
    assert as_json(cost, SHOWN)["our_suspects_confirmed"] == 1200
