"""`python -m deploy.embedded up|down|status|jars`: see --help.

Where faults of the network are to harm nothing else, root starts it, and whatever uses it, in a
network namespace of its own:

    unshare -n sh -c 'ip link set lo up; exec python -m deploy.embedded up --data-dir DIR ...'

`down` works from outside: it needs no network. `nsenter -n -t PID` with the pid of a server, from
DIR/run, gets back in.
"""

import argparse
import json
import logging
import sys
from pathlib import Path

from deploy.embedded import interrupts, jars
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.spec import ADMIN, DEFAULT_KEYSPACE, Wanted
from deploy.embedded.stack import Stack
from deploy.embedded.supervisor import Supervisor


def main(arguments: list[str]) -> int:
    """Run one command. Returns 0, or 1 with one line on standard error that says what to do."""
    given = _parser().parse_args(arguments)
    interrupts.raise_once()  # so that what an unfinished up started is ended too
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        return int(given.run(given))
    except EmbeddedError as error:
        print(f"embedded: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("embedded: interrupted", file=sys.stderr)
        return 130


def _up(given: argparse.Namespace) -> int:
    wanted = Wanted(
        given.keyspace,
        given.cassandra,
        ADMIN if given.auth else None,
        tuple(given.tables),
        given.caches,
        tuple(given.schema),
        data_centres=given.data_centres,
        secure=given.secure or None,
    )
    stack = Stack(given.data_dir, wanted)
    stack.up()
    print(json.dumps(stack.describe()))
    return 0


def _down(given: argparse.Namespace) -> int:
    Stack.existing(given.data_dir).down()
    return 0


def _status(given: argparse.Namespace) -> int:
    stack = Stack.existing(given.data_dir)
    print(json.dumps(stack.describe()))
    missing = stack.missing()
    if missing:
        print(f"embedded: not running: {', '.join(missing)}; run up", file=sys.stderr)
    return 1 if missing else 0


def _jars(_given: argparse.Namespace) -> int:
    for place in jars.fetch():
        print(place)
    return 0


def _supervise(given: argparse.Namespace) -> int:
    stack = Stack.existing(given.data_dir)
    Supervisor(stack.layout, stack.spec).run()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.embedded",
        description="Cassandra with change capture, Kafka and the Debezium agent, without Docker.",
    )
    commands = parser.add_subparsers(required=True, metavar="up|down|status|jars")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--data-dir", type=Path, required=True, help="all files of this stack")
    up = commands.add_parser("up", parents=[where], help="start it; prints one JSON object")
    _add_options(up)
    down = commands.add_parser("down", parents=[where], help="stop every process; data stays")
    down.set_defaults(run=_down)
    status = commands.add_parser("status", parents=[where], help="prints the JSON object of up")
    status.set_defaults(run=_status)
    fetch = commands.add_parser("jars", help="fetch what is missing with Maven")
    fetch.set_defaults(run=_jars)
    supervise = commands.add_parser("supervise", parents=[where])
    supervise.set_defaults(run=_supervise)
    return parser


def _add_options(up: argparse.ArgumentParser) -> None:
    up.add_argument("--keyspace", help=f"whose tables are watched (default {DEFAULT_KEYSPACE})")
    up.add_argument(
        "--tables",
        type=lambda names: names.split(","),
        default=[],
        help="whose changes are captured, separated by commas (a new data directory needs them)",
    )
    up.add_argument(
        "--schema",
        type=lambda text: [each.strip() for each in text.split(";") if each.strip()],
        default=[],
        help="CQL that is carried out before the agent starts, each statement with IF NOT EXISTS",
    )
    up.add_argument("--cassandra", choices=("5.0", "4.1"), help="release (default 5.0)")
    up.add_argument(
        "--caches",
        choices=("small", "production"),
        help="how large Cassandra's caches are (default small, and Java compiles it lightly: for"
        " tests, not for measurements)",
    )
    several = up.add_mutually_exclusive_group()
    several.add_argument(
        "--nodes",
        type=lambda number: (int(number),),
        dest="data_centres",
        help="how many Cassandra nodes, at 127.0.0.1, .2 and so on (default 1)",
    )
    several.add_argument(
        "--data-centres",
        type=lambda sizes: tuple(map(int, sizes.split(","))),
        help="the nodes of each data centre, such as 2,1",
    )
    up.add_argument("--auth", action="store_true", help="passwords, roles and an audit log")
    up.add_argument(
        "--secure",
        action="store_true",
        help="TLS with certificates of clients, passwords and rights, at Cassandra and at Kafka",
    )
    up.set_defaults(run=_up)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
