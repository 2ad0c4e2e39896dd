"""The command line's connection to Cassandra: three options, and errors in one line."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cassandra.cluster import Cluster, Session

from deploy.mailserver.james import checked_name
from deploy.mailserver.statements import SERVER_TROUBLE


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --host, --port and --keyspace."""
    parser.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1")
    parser.add_argument("--port", type=int, default=9042, help="default 9042")
    parser.add_argument("--keyspace", type=keyspace_name, default="apache_james")


def keyspace_name(text: str) -> str:
    """A keyspace name from the command line."""
    try:
        return checked_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@contextmanager
def connected(host: str, port: int, **options: Any) -> Iterator[Session]:
    """A session, with these options of the driver.

    Where Cassandra fails, the program exits with 2 and one line of why.
    """
    cluster = Cluster([host], port=port, **options)
    try:
        yield cluster.connect()
    except SERVER_TROUBLE as error:
        print(f"Cassandra at {host}:{port}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    finally:
        cluster.shutdown()
