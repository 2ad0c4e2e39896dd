"""What an admin makes where TLS, logins and rights are on: the reconciler's role and keyspace."""

from collections.abc import Mapping
from pathlib import Path

from cassandra.cluster import Session

from checkpoints.cassandra import create_schema
from deploy import roles
from deploy.embedded import Stack
from deploy.embedded.settings_file import Sections

TOLD = (
    "every connection is encrypted and has a login: TLS with certificates of both sides at"
    " Cassandra, SCRAM at Kafka. The reconciler has the rights of roles.cql and acls.sh alone"
)


def login(folder: Path) -> Sections:
    """The settings of the shipped role, whose password is in a file."""
    password = folder / "role.password"
    password.write_text(roles.PASSWORD, encoding="utf-8")
    return {"cassandra": {"username": roles.ROLE, "password_file": str(password)}}


def prepare(stack: Stack, admin: Session) -> None:
    """Make that role, with the rights on the tables that exist, and our keyspace.

    Of several nodes each has a copy of our keyspace, and of logins.
    """
    nodes = len(stack.nodes)
    if nodes > 1:
        admin.execute(f"ALTER KEYSPACE system_auth WITH replication = {dict(copies(nodes))}")
        stack.nodes[0].cassandra.nodetool("repair", "--full", "system_auth")
    there = admin.cluster.metadata.keyspaces[stack.keyspace].tables
    for statement in roles.statements(there, nodes):
        admin.execute(statement)
    create_schema(admin, replication=copies(nodes))


def copies(number: int) -> Mapping[str, str]:
    """The replication of a keyspace of one data centre."""
    return {"class": "SimpleStrategy", "replication_factor": str(number)}
