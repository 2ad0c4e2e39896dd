"""`reconcile lwt-report` gives back what was done to the real servers, to the number."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from reconcilers.lwt.cost import PAXOS
from reconcilers.lwt.placement import exactly
from reconcilers.words.exit_codes import ExitCode
from streaming.settings import load
from tests.endpoints import Endpoints
from tests.stack.reporting import Mail, Report, mail, reporting
from tests.stack.scenes import reconcile
from tests.stack.streams import PATIENCE, write_settings

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def plain(cassandra: Session) -> Iterator[Mail]:
    with mail(cassandra) as made:
        yield made


@pytest.fixture(scope="module")
def report(stack: Endpoints) -> Iterator[Report]:
    with reporting(load(stack.config, {}).cassandra) as made:
        yield made


@pytest.fixture
def config(stack: Endpoints, plain: Mail, tmp_path: Path) -> Path:
    return write_settings(tmp_path / "reconcile.toml", stack, plain.keyspace, "lwt_own", {})


def test_a_known_number_of_each_kind_comes_back(plain: Mail, report: Report) -> None:
    def work() -> None:
        plain.insert(*range(20))
        assert plain.update(*range(7), expected=9) == [False] * 7
        assert plain.update(*range(4), expected=0) == [True] * 4
        plain.read("imapuidtable", *range(13), level=ConsistencyLevel.SERIAL)
        plain.read("imapuidtable", *range(11))
        plain.write(*range(17))
        plain.read("messageidtable", *range(5))
        list(plain.session.execute(f"SELECT * FROM {plain.keyspace}.messageidtable"))

    cost = report(work)
    assert cost.known_by_table
    truth, other = plain.of(cost, "imapuidtable"), plain.of(cost, "messageidtable")
    assert (truth.changed, truth.unchanged) == (exactly(20 + 4), exactly(7 + 13))
    assert truth.serial_reads.low <= 13 <= truth.serial_reads.high
    assert truth.refused.low <= 7 <= truth.refused.high
    assert (truth.ordinary_reads, truth.ordinary_writes) == (exactly(11), 0)
    assert (other.changed, other.unchanged) == (exactly(0), exactly(0))
    assert (other.serial_reads, other.refused) == (exactly(0), exactly(0))
    assert (other.ordinary_reads, other.ordinary_writes) == (exactly(5 + 1), 17)
    assert cost.shares["writes"].paxos >= 2 * (20 + 7 + 4 + 13)
    assert PAXOS in {each.table for each in cost.tables}


def test_latencies_are_those_that_a_client_sees(cassandra: Session, report: Report) -> None:
    took = []
    with mail(cassandra) as new:

        def work() -> None:
            for number in range(20):
                began = time.monotonic()
                new.write(number)
                took.append(time.monotonic() - began)

        shown = new.of(report(work), "messageidtable").gauges
    assert shown.write_p99 is not None
    a_write_takes_at_least, cassandra_rounds_up_by = 0.02, 1.25
    assert a_write_takes_at_least < shown.write_p99 < max(took) * 1e3 * cassandra_rounds_up_by
    assert shown.read_p99 is None


@pytest.mark.parametrize(("serial", "refused"), [(6, 0), (0, 6)])
def test_serial_reads_and_refusals_are_told_apart(
    plain: Mail, report: Report, serial: int, refused: int
) -> None:
    def work() -> None:
        plain.read("imapuidtable", *range(serial), level=ConsistencyLevel.SERIAL)
        plain.update(*range(refused), expected=99)

    found = plain.of(report(work), "imapuidtable")
    assert found.unchanged == exactly(6)
    assert found.serial_reads.low <= serial <= found.serial_reads.high
    assert found.refused.low <= refused <= found.refused.high


def test_the_command_prints_json_and_names_the_truth(config: Path, plain: Mail) -> None:
    plain.read("imapuidtable", 1, level=ConsistencyLevel.SERIAL)
    done = reconcile("lwt-report", "--config", str(config), "--interval", "1s", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    told = json.loads(line)
    assert told["seconds"] >= 1
    assert told["nodes"] == told["nodes_told_lwt"]
    assert told["paxos_variant"] == "v1"
    assert told["truths"] == {"imapuidtable": "earlier, since a node's start"}
    assert told["not_known"] == []
    assert told["sentence"].endswith(".")


def test_the_command_prints_columns_where_there_is_no_terminal(config: Path) -> None:
    done = reconcile("lwt-report", "--config", str(config), "--interval", "1s")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("table  ") for line in lines)
    assert lines[-1].endswith(".")


def test_it_goes_on_until_somebody_ends_it(config: Path) -> None:
    command = [sys.executable, "-m", "streaming.app", "lwt-report", "--config", str(config)]
    command += ["--interval", "1s", "--watch", "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        told = [json.loads(running.stdout.readline()) for _ in range(2)]
        running.terminate()
        assert running.wait(PATIENCE) == ExitCode.TERMINATED
    assert all(each["seconds"] >= 1 for each in told)


def test_a_node_without_jmx_is_named_and_the_rest_is_shown(
    stack: Endpoints, plain: Mail, tmp_path: Path
) -> None:
    closed = {"cassandra": {"jmx_port": 1}}
    config = write_settings(tmp_path / "c.toml", stack, plain.keyspace, "lwt_own", closed)
    done = reconcile("lwt-report", "--config", str(config), "--interval", "1s", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (gap,) = told["not_known"]
    assert "reports no lightweight transactions by table" in gap
    assert "nothing answers JMX at 127.0.0.1:1" in gap
    assert told["truths"] == {"imapuidtable": "not known"}
    assert told["paxos"]["writes"]["all"] >= 0


def test_a_keyspace_that_is_not_there_is_one_line(stack: Endpoints, tmp_path: Path) -> None:
    config = write_settings(tmp_path / "c.toml", stack, "nowhere", "lwt_own", {})
    done = reconcile("lwt-report", "--config", str(config), "--interval", "1s")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "reconcile: there is no keyspace nowhere: set cassandra.keyspace"
    )
