"""The table of the families of rights."""

from checkpoints.schema.step import SchemaStep

CQL = """
-- As expiries; the key names the mailbox, whose list is the truth.
CREATE TABLE IF NOT EXISTS $ks.expiries_rights (
    username text,
    mailboxid uuid,
    minute int,
    due bigint,
    PRIMARY KEY (minute, due, username, mailboxid)
);
"""

STEP = SchemaStep(2, "rights", CQL)
