"""What is kept of a run: one JSON file, of which docs/nemesis.md is made. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from deploy.nemesis.verdict import Judgement, ViolationName

NAMED = (
    (ViolationName.LOST, "lost"),
    (ViolationName.OVERRIDDEN, "overridden"),
    (ViolationName.REMOVED, "removed without a delete"),
    (ViolationName.TRUTH_WRITE, "truth writes"),
    (ViolationName.DOUBLED, "doubled deltas"),
)
"""The violations that the first line of a report counts, with their words there."""

TOLD = """\
Made from the records below docs/nemesis/; `make nemesis` adds one. A run starts three Cassandra
nodes with three copies of each row, an agent each, two Kafka brokers, and `reconcile stream --mode
repair` with all systems (D = 10 s, W = 2 s). Users work from a seed, and some of their statements
are lost, late or doubled. Meanwhile faults are injected for 20 to 60 s each, one or two at a time,
but never two of the nodes and agents. The whole run has a network of its own (`unshare --net`), so
nothing else on the machine is touched. It needs root, and Debian's packages of iptables and
libfaketime.

- Processes are killed (SIGKILL) or paused (SIGSTOP). A node is killed while the others keep no
  hints for it, or replaced with empty disks. `nodetool repair` runs at a node. If the stream cannot
  begin because no server answers, it is started again, as its unit does.
- Connections of a node with the other nodes, of an agent with the broker, and of the stream with
  one node, with all nodes or with the broker are cut: reset and refused, dropped both ways,
  dropped one way, or 30 % of their packets are lost.
- The clock of a node and its agent is 2 s ahead or behind, or those of all nodes are: to the stream
  that is as if its own clock was wrong. The checker allows for 2 s more in such a run.
- Kafka's leaders move to the second broker, and back because it is killed. The first broker is the
  only controller.
- The disk of the last node (data, commit log, cdc_raw, hints) or Kafka's log folder has no free
  block. Both are in memory; their processes are killed and started when there is space again.

A checker that knows nothing of the product judges all tables by the history of the users' writes
and their outcomes. All must agree within 4 (D + W) + 60 s after everything runs, every canary is
received, and no sweep is due. Counters have about six minutes more, because quotas are judged late.
An operation is an acknowledged write to a message's place, a list of rights or a mailbox, so a move
is two; each acknowledged write counts as a changed row. Rows that the product reports and leaves to
a person are counted apart: what one delete took of a message with several UIDs, and, if a node's
disks were replaced, rows whose deletes' events were lost with them. Counters may count such a row
or not.

Four kinds of run are apart. In a run on a Spark cluster executors take the place of Spark's
workers; they have the code that the driver sends, and their connections are the stream's. In a run
with TLS all clients of Cassandra and Kafka have certificates or logins, the stream has its shipped
rights alone, and Kafka has one broker. In a run with D = 5 s clocks are wrong by 3 s, and each such
fault lasts until the stream has said that repairs pause, or the run ends as one that could not be
made. In a run from 4.1 to 5.0 nothing is injected but the upgrade: each node is stopped in order
and started in the new release on its data, and its agent with it (3.3.0 to 3.4.1). The agent's
offsets are removed at each of its starts, in every deployment: the newer agent reads what the older
release has left in cdc_raw from the beginning, so some events are sent twice and none is lost.

Packet delay, broken disks and several machines cannot be injected where these runs are made. A
node's cdc_raw is never full alone: Cassandra links its files to those of the commit log, which
needs one file system.

`mailboxRecents` has gc_grace_seconds of ten days in these runs. With James's 0 a node that was
down brings rows back that its users deleted meanwhile, and nobody has written them
([faults.md](faults.md#what-survives-a-crash)).
"""
"""What a run is, on the page of all runs."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. `release` is Cassandra's, `at` an ISO date and time.

    `operations` counts acknowledged ones, `rows` the rows that they changed. `faults` has the
    number of faults of each kind, `violations` that of each name. `convergence_s` is the longest
    time (s) from the end of a fault until all tables agreed; None: they never did after one. `left`
    counts the rows that wait for a person. `delay_s` is the delay D of the stream, which ran on the
    executors of a Spark cluster if `on_executors`. `secure` is with TLS, logins and rights.
    """

    seed: int
    release: str
    at: str
    operations: int
    rows: int
    faults: Mapping[str, int]
    violations: Mapping[str, int]
    weakened: int
    convergence_s: float | None
    copies: int = 3
    left: int = 0
    delay_s: int = 10
    on_executors: bool = False
    secure: bool = False

    @property
    def passed(self) -> bool:
        """Whether the run had no violation, and all tables agreed after each fault."""
        return not any(self.violations.values()) and self.convergence_s is not None


def violations_by_name(judgement: Judgement) -> dict[str, int]:
    """The number of violations of each name, zeros included."""
    return {name.value: judgement.count(name) for name in ViolationName}


def first_line(record: RunRecord) -> str:
    """The first line of a report. What did not converge is named only if there is any."""
    counted = [f"{record.violations.get(name.value, 0)} {words}" for name, words in NAMED]
    if left := record.violations.get(ViolationName.NOT_CONVERGED.value, 0):
        counted.append(f"{left} not converged")
    if record.left:
        counted.append(f"{record.left} left to a person")
    return (
        f"{record.operations:,} operations, {record.rows:,} changed rows, "
        f"{sum(record.faults.values())} faults of {len(record.faults)} kinds, "
        f"RF {record.copies}: {', '.join(counted)}; longest convergence {_convergence(record)}"
    )


def record_as_json(record: RunRecord) -> str:
    """The text of a record's file."""
    return json.dumps(asdict(record), indent=2) + "\n"


def record_from_json(text: str) -> RunRecord:
    """A record from its file. Raises ValueError or TypeError if the text is no record."""
    return RunRecord(**json.loads(text))


def page(records: Iterable[RunRecord]) -> str:
    """The page of all runs, in Markdown: the sums, a table of runs, a table of faults."""
    runs = sorted(records, key=lambda record: (record.at, record.seed))
    if not runs:
        return f"# Fault-injection runs\n\n{TOLD}\nNo run is kept yet.\n"
    kinds = sorted({kind for run in runs for kind in run.faults})
    releases = sorted({run.release for run in runs})
    lines = [
        "# Fault-injection runs",
        "",
        TOLD,
        f"{len(runs)} runs: {sum(run.operations for run in runs):,} acknowledged operations, "
        f"{sum(run.rows for run in runs):,} changed rows, "
        f"{sum(not run.passed for run in runs)} failed.",
        "",
        "| run | Cassandra | D | result |",
        "|---|---|---|---|",
        *map(_row, runs),
        "",
        f"| fault | {' | '.join(releases)} |",
        f"|---|{'---|' * len(releases)}",
        *(f"| {kind} | {_times(kind, runs, releases)} |" for kind in kinds),
    ]
    return "\n".join(lines) + "\n"


def _row(run: RunRecord) -> str:
    """A run in the table of runs."""
    more = {"Spark cluster": run.on_executors, "TLS and logins": run.secure}
    where = ", ".join([run.release, *(words for words, its in more.items() if its)])
    return f"| {run.at}, seed {run.seed} | {where} | {run.delay_s} s | {first_line(run)} |"


def _times(kind: str, runs: Iterable[RunRecord], releases: Iterable[str]) -> str:
    """How often a fault was injected, by release."""
    known = list(runs)
    return " | ".join(
        str(sum(run.faults.get(kind, 0) for run in known if run.release == release))
        for release in releases
    )


def _convergence(record: RunRecord) -> str:
    return "never" if record.convergence_s is None else f"{record.convergence_s:g} s"
