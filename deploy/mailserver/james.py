"""James's tables in a keyspace of any name (columns in james.cql)."""

import re
from pathlib import Path
from string import Template

from cassandra.cluster import Session

from deploy import wake_tables
from deploy.embedded import capture


def create_schema(session: Session, keyspace: str, replication_factor: int = 1) -> None:
    """Create the keyspace and all tables that do not exist yet.

    `replication_factor` is a number of copies, for SimpleStrategy.
    Raises ValueError where the name would need quotes in CQL.
    """
    session.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {checked_name(keyspace)} WITH replication = "
        f"{{'class': 'SimpleStrategy', 'replication_factor': {replication_factor}}}"
    )
    for statement in schema_statements(keyspace):
        session.execute(statement)


def schema_statements(keyspace: str) -> list[str]:
    """The CREATE statements of james.cql, one string each, in order."""
    text = Path(__file__).with_name("james.cql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    cql = Template("\n".join(lines)).substitute(keyspace=checked_name(keyspace))
    return [statement.strip() for statement in cql.split(";") if statement.strip()]


def captured_statements(keyspace: str) -> list[str]:
    """The CREATE statements of james.cql, with capture on for every table that can have it."""
    captured = {f"{keyspace}.{table}" for table in cdc_tables()}
    return [
        f"{each} {'AND' if ') WITH ' in each else 'WITH'} cdc = true" if table in captured else each
        for each in schema_statements(keyspace)
        for table in re.findall(r"EXISTS (\S+)", each)
    ]


def cdc_tables() -> tuple[str, ...]:
    """Of the tables whose changes are captured, those of james.cql."""
    made = {re.findall(r"EXISTS \w+\.(\w+)", each)[0] for each in _creations("any")}
    return tuple(table for table in wake_tables.TABLES if table in made)


def _creations(keyspace: str) -> list[str]:
    return [each for each in schema_statements(keyspace) if each.startswith("CREATE TABLE")]


def enable_cdc(session: Session, keyspace: str) -> None:
    """Turn change data capture on for every table that can have it (needs ALTER)."""
    for table in cdc_tables():
        name = f"{checked_name(keyspace)}.{table}"
        (grace,) = session.execute(
            "SELECT gc_grace_seconds FROM system_schema.tables"
            " WHERE keyspace_name = %s AND table_name = %s",
            (keyspace, table),
        ).one()
        for cql in capture.statements(name, grace):
            session.execute(cql)


def checked_name(keyspace: str) -> str:
    """The name itself; raises ValueError where CQL would need quotes around it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,47}", keyspace):
        raise ValueError(
            f"keyspace {keyspace!r}: use lower-case letters, digits and _ (at most 48)"
        )
    return keyspace
