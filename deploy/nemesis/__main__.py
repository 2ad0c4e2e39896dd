"""One fault-injection run on real servers: `make nemesis`.

    python -m deploy.nemesis [--kind faults|clocks|executors|secure|upgrade] [--seed N]
                             [--minutes M] [--release 5.0|4.1] [--rate R] [--keep]

Starts three Cassandra nodes with an agent each, Kafka, and a stream that repairs all systems, lets
users work while faults are injected, and judges every write of the users. It prints the
first line of the report, keeps a record below docs/nemesis/ and makes docs/nemesis.md. Exits with 0
where nothing is wrong, with 1 where something is, with 2 where the run could not be made, and with
130 when it was interrupted.
"""

import argparse
import json
import logging
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from kafka.errors import KafkaError

from deploy.embedded import interrupts, jars
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.jars import ROOT
from deploy.embedded.spec import DEFAULT_RELEASE, CassandraRelease
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.nemesis import hosts, tools
from deploy.nemesis.plan import USUAL_MINUTES, RunKind, RunPlan
from deploy.nemesis.record import RunRecord, first_line, page, record_as_json, record_from_json
from deploy.nemesis.run import play
from deploy.nemesis.verdict import Judgement

FINE, WRONG, NOT_MADE, INTERRUPTED = 0, 1, 2, 130
RECORDS = ROOT / "docs" / "nemesis"
PAGE = RECORDS.with_suffix(".md")
MOST_SHOWN = 20
UPGRADED: CassandraRelease = "4.1"
"""With what an upgrade begins."""


def main(arguments: list[str]) -> int:
    """Make one run. Returns the exit code."""
    given = _parser().parse_args(arguments)
    if not hosts.is_alone():
        return enter_namespaces(arguments)
    interrupts.raise_once()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    for noisy in ("cassandra", "kafka", "deploy.mailserver"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    kind = RunKind(given.kind)
    release = UPGRADED if kind is RunKind.UPGRADE else given.release
    plan = RunPlan(given.seed, given.minutes, release, given.rate, kind)
    folder = Path(tempfile.mkdtemp(prefix="james-nemesis-"))
    code = NOT_MADE
    try:
        record, judgement = play(plan, folder)
        code = FINE if record.passed else WRONG
        tell(record, judgement, folder)
        keep(record, given.records)
    except (EmbeddedError, KafkaError, *SERVER_TROUBLE) as error:
        print(f"nemesis: the run could not be made: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("nemesis: interrupted", file=sys.stderr)
        code = INTERRUPTED
    if code == FINE and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"nemesis: logs and history stay in {folder}", file=sys.stderr)
    return code


def enter_namespaces(arguments: list[str]) -> int:
    """Fetch what needs the network, and go on where only this run is. Returns if that fails."""
    try:
        tools.fetch()
        jars.fetch()
        hosts.enter(arguments)
    except (EmbeddedError, OSError) as error:
        print(f"nemesis: the run could not be made: {error}", file=sys.stderr)
    return NOT_MADE


def tell(record: RunRecord, judgement: Judgement, folder: Path) -> None:
    """Print the first line of the report and some of what is wrong; all of it goes to a file."""
    print(first_line(record), flush=True)
    lines = [json.dumps(asdict(each)) for each in judgement.violations]
    (folder / "violations.jsonl").write_text("".join(f"{each}\n" for each in lines), "utf-8")
    for line in lines[:MOST_SHOWN]:
        print(line)


def keep(record: RunRecord, records: Path) -> None:
    """Keep a record beside the others, and make the page of all of them, beside their folder."""
    records.mkdir(parents=True, exist_ok=True)
    at, release = record.at[:19].replace(":", ""), record.release.replace(" ", "-")
    name = f"{at}-{release}-seed-{record.seed}.json"
    (records / name).write_text(record_as_json(record), "utf-8")
    texts = (each.read_text("utf-8") for each in records.glob("*.json"))
    records.with_suffix(".md").write_text(page(map(record_from_json, texts)), "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.nemesis", description="One fault-injection run on real servers."
    )
    parser.add_argument(
        "--kind",
        choices=list(map(str, RunKind)),
        default=str(RunKind.FAULTS),
        help="what is done to the servers (default faults)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of operations and faults (default 1)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=USUAL_MINUTES,
        help=f"how long users work (default {USUAL_MINUTES:g})",
    )
    parser.add_argument("--release", choices=get_args(CassandraRelease), default=DEFAULT_RELEASE)
    parser.add_argument(
        "--rate", type=float, default=20.0, help="operations a second (default 20, for two cores)"
    )
    parser.add_argument(
        "--records", type=Path, default=RECORDS, help="where its record goes (docs/nemesis)"
    )
    parser.add_argument("--keep", action="store_true", help="keep logs and history of a good run")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
