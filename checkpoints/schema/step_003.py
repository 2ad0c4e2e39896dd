"""The table of the family of mailbox objects."""

from checkpoints.schema.step import SchemaStep

CQL = """
-- As expiries; no delete of a mailbox is remembered.
CREATE TABLE IF NOT EXISTS $ks.expiries_mailboxes (
    username text,
    namespace text,
    mailboxname text,
    minute int,
    due bigint,
    PRIMARY KEY (minute, due, username, namespace, mailboxname)
);
"""

STEP = SchemaStep(3, "mailboxes", CQL)
