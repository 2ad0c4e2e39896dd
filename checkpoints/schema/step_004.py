"""The tables of the families of attachments."""

from checkpoints.schema.step import SchemaStep

CQL = """
-- As expiries; the family needs no source.
CREATE TABLE IF NOT EXISTS $ks.expiries_attachments (
    idasuuid uuid,
    minute int,
    due bigint,
    PRIMARY KEY (minute, due, idasuuid)
);

-- As expiries; the key names the message, whose list is the truth.
CREATE TABLE IF NOT EXISTS $ks.expiries_references (
    attachmentidasuuid uuid,
    message text,
    minute int,
    due bigint,
    PRIMARY KEY (minute, due, attachmentidasuuid, message)
);
"""

STEP = SchemaStep(4, "attachments", CQL)
