"""The table of the family of right lists."""

from checkpoints.schema.step import SchemaStep

CQL = """
-- As expiries; the key begins with the mailbox, whose events are the truth.
CREATE TABLE IF NOT EXISTS $ks.expiries_right_lists (
    mailboxid uuid,
    name text,
    minute int,
    due bigint,
    PRIMARY KEY (minute, due, mailboxid, name)
);
"""

STEP = SchemaStep(5, "right lists", CQL)
