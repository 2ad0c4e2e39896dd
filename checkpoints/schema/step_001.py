"""Step 1: the tables of the first version, exactly as commit 258deba made them.

A keyspace of that commit has them all, and is taken over without a change. Needs nothing. That
commit's product can still read and write what this step leaves.

Nothing here is read by the mail server. No statement of ours on it is a lightweight transaction,
except on ``lease`` and ``tally_rounds``.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- One row for each open finding; no TTL: it stays until it is closed. bucket = hash of the slot, 16
-- of them, so that listing is 16 reads. A closed finding that comes back because a node missed its
-- tombstone is closed again by its next look, so tombstones need to last only as long as hints do.
CREATE TABLE IF NOT EXISTS $ks.open_findings (
    family text,
    bucket int,
    projection text,
    mailboxid uuid,
    uid bigint,
    messageid text,
    kind text,
    state text,
    sentence text,
    attempts int,
    tried_at bigint,
    last_batch text,
    found_at bigint,
    oldest bigint,
    next_look bigint,
    accepted boolean,
    before_image text,
    writes text,
    truth text,
    PRIMARY KEY ((family, bucket), projection, mailboxid, uid)
) WITH gc_grace_seconds = 10800
   AND compaction = {'class': 'LeveledCompactionStrategy'};

-- Every state that a finding went through, with its before-image: the undo period is the TTL.
CREATE TABLE IF NOT EXISTS $ks.finding_log (
    day date,
    bucket int,
    at timeuuid,
    family text,
    projection text,
    mailboxid uuid,
    uid bigint,
    kind text,
    state text,
    finding text,
    PRIMARY KEY ((day, bucket), at)
) WITH default_time_to_live = 7776000
   AND compaction = {'class': 'TimeWindowCompactionStrategy',
                     'compaction_window_unit': 'DAYS', 'compaction_window_size': 3};

-- Lineage, the same by message and by row. `seen` is always true: its TTL tells an entry that is
-- expiring. What is found by row is found by message too: that one is written first.
CREATE TABLE IF NOT EXISTS $ks.lineage_by_message (
    messageid uuid,
    mailboxid uuid,
    uid bigint,
    seen boolean,
    in_truth boolean,
    recorded_at bigint,
    PRIMARY KEY (messageid, mailboxid, uid)
);

CREATE TABLE IF NOT EXISTS $ks.lineage_by_row (
    mailboxid uuid,
    uid bigint,
    messageid uuid,
    seen boolean,
    in_truth boolean,
    recorded_at bigint,
    PRIMARY KEY (mailboxid, uid, messageid)
);

-- Deletes seen; uid is -1 where a truth delete named none. Times are write times, µs.
CREATE TABLE IF NOT EXISTS $ks.truth_deletes (
    messageid uuid,
    mailboxid uuid,
    uid bigint,
    deleted_at bigint,
    PRIMARY KEY ((messageid, mailboxid), uid, deleted_at)
) WITH default_time_to_live = 7776000;

CREATE TABLE IF NOT EXISTS $ks.projection_deletes (
    mailboxid uuid,
    uid bigint,
    deleted_at bigint,
    PRIMARY KEY ((mailboxid, uid), deleted_at)
) WITH default_time_to_live = 7776000;

CREATE TABLE IF NOT EXISTS $ks.mailbox_deletes (
    mailboxid uuid,
    deleted_at bigint,
    PRIMARY KEY (mailboxid, deleted_at)
) WITH default_time_to_live = 7776000;

-- Keys with a cell that expires: no event tells when it does, so a look is due then. `hour` counts
-- from the epoch; rows leave by TTL, each stream reads on from its newest bookmark.
CREATE TABLE IF NOT EXISTS $ks.expiries (
    hour int,
    due bigint,
    mailboxid uuid,
    uid bigint,
    messageid uuid,
    PRIMARY KEY (hour, due, mailboxid, uid)
);

-- What a mailbox was last counted to, by chunks of UIDs. What was counted has the write time of
-- when the count began: a late one never replaces a newer. Chunk -1: when all were counted at once.
-- width: how many UIDs a chunk spans.
CREATE TABLE IF NOT EXISTS $ks.tallies (
    mailboxid uuid,
    width int,
    chunk bigint,
    marked_at bigint,
    counted_at bigint,
    messages bigint,
    unseen bigint,
    size bigint,
    PRIMARY KEY ((mailboxid, width), chunk)
);

-- Mailboxes with marks, by hour (from the epoch): where a stream that starts again goes on.
CREATE TABLE IF NOT EXISTS $ks.tally_marks (
    hour int,
    bucket int,
    mailboxid uuid,
    PRIMARY KEY ((hour, bucket), mailboxid)
);

-- How many corrections of a counter row were claimed. Written by lightweight transactions.
CREATE TABLE IF NOT EXISTS $ks.tally_rounds (
    tally text,
    key text,
    round bigint,
    PRIMARY KEY ((tally, key))
);

-- Since when every change has reached the stream.
CREATE TABLE IF NOT EXISTS $ks.watches (
    name text,
    since bigint,
    PRIMARY KEY (name)
);

-- One row for each opening of a breaker; it is open while closed_at is null. Closing writes another
-- cell instead of deleting, so the clocks of a stream and of an operator's host cannot undo each
-- other.
CREATE TABLE IF NOT EXISTS $ks.breakers (
    scope text,
    breaker text,
    opened_at bigint,
    reason text,
    closed_at bigint,
    PRIMARY KEY (scope, breaker, opened_at)
);

-- Which offsets each batch read. recorded_at only goes up within a stream, whatever the clock does.
CREATE TABLE IF NOT EXISTS $ks.bookmarks (
    stream text,
    day date,
    recorded_at bigint,
    name text,
    checkpoint text,
    batch_id bigint,
    batch_time bigint,
    watermark bigint,
    offsets text,
    PRIMARY KEY ((stream, day), recorded_at)
) WITH CLUSTERING ORDER BY (recorded_at DESC)
   AND default_time_to_live = 604800
   AND compaction = {'class': 'TimeWindowCompactionStrategy',
                     'compaction_window_unit': 'DAYS', 'compaction_window_size': 1};

-- Where the newest bookmark of a stream stands (its day may be ahead of the clock).
CREATE TABLE IF NOT EXISTS $ks.bookmark_heads (
    stream text,
    recorded_at bigint,
    PRIMARY KEY (stream)
);

-- Bookmarks that an operator gave a name.
CREATE TABLE IF NOT EXISTS $ks.named_bookmarks (
    stream text,
    name text,
    recorded_at bigint,
    checkpoint text,
    batch_id bigint,
    batch_time bigint,
    watermark bigint,
    offsets text,
    PRIMARY KEY (stream, name)
);

-- Which live stream may repair. Written by lightweight transactions.
CREATE TABLE IF NOT EXISTS $ks.lease (
    name text,
    holder text,
    host text,
    PRIMARY KEY (name)
);
"""

STEP = SchemaStep(1, "the first tables", CQL)
