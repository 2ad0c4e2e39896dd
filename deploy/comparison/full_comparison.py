"""The full comparison of every table, by code that shares nothing with the reconciler.

    python -m deploy.comparison.full_comparison --port 9042 --keyspace apache_james

Reads the truth and every table that repeats it or sums it up, one after the other, whole, and tells
every difference: so run it when nobody writes. Exits with 0 where there is none, with 1 where there
are some, and with 2 where the tables cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Iterator

from cassandra.cluster import Session

from deploy.comparison.differences import differences
from deploy.comparison.messages import Mismatch
from deploy.comparison.snapshot import read_whole
from deploy.mailserver.connection import add_options, connected


def full_comparison(session: Session, keyspace: str) -> Iterator[Mismatch]:
    """Every difference between the truth and all that repeats it; reads all tables whole.

    The session's rows must be named tuples, as they are by default.
    """
    return differences(read_whole(session, keyspace))


def main() -> None:
    """Print each difference as a line of JSON; exit with 1 where there is any."""
    parser = argparse.ArgumentParser(description="compare each truth with all that repeats it")
    add_options(parser)
    given = parser.parse_args()
    found = 0
    with connected(given.host, given.port) as session:
        for difference in full_comparison(session, given.keyspace):
            found += 1
            line = {
                "projection": difference.projection,
                "kind": difference.kind,
                "mailboxid": str(difference.mailboxid),
                "uid": difference.uid,
                "messageids": [str(messageid) for messageid in difference.messageids],
                "columns": difference.columns,
                "owner": difference.owner,
            }
            print(json.dumps(line))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
