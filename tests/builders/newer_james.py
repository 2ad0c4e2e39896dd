"""What a keyspace of James 3.9 and later has, and has no more: its quotas are in another table."""

from cassandra.cluster import Session

GONE = ("acl", "attachmentmessageid", "attachmentowners", "currentquota", "messagev2")
QUOTA_CURRENT_VALUE = """CREATE TABLE {keyspace}.quotacurrentvalue (
    identifier text,
    quotacomponent text,
    quotatype text,
    currentvalue counter,
    PRIMARY KEY (identifier, quotacomponent, quotatype)
)"""
"""As James's `CassandraMutualizedQuotaDataDefinition` declares it."""


def add_newer_quotas(session: Session, keyspace: str) -> None:
    """The newer table beside the older, as after an upgrade."""
    session.execute(QUOTA_CURRENT_VALUE.format(keyspace=keyspace))


def become_newer(session: Session, keyspace: str) -> None:
    """The tables as James 3.9 makes them from nothing."""
    for table in GONE:
        session.execute(f"DROP TABLE IF EXISTS {keyspace}.{table}")
    add_newer_quotas(session, keyspace)
