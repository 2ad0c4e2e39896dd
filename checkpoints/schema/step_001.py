"""Step 1: the tables of the first release. It needs nothing, and no older product exists.

The mail server reads none of them. Lightweight transactions write only ``lease``, ``owner``,
``tally_rounds`` and the generations.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- One row for each open finding; no TTL: it stays until it is closed. key = the slot as operators
-- type it; bucket = hash of the key, 16 of them, so that listing is 16 reads. A closed finding that
-- comes back because a node missed its tombstone is closed again by its next look, so tombstones
-- need to last only as long as hints do. accepted: by a person, as JSON; no look writes it.
CREATE TABLE IF NOT EXISTS $ks.findings (
    family text,
    bucket int,
    projection text,
    key text,
    source text,
    kind text,
    state text,
    sentence text,
    attempts int,
    tried_at bigint,
    last_batch text,
    found_at bigint,
    oldest bigint,
    next_look bigint,
    accepted set<text>,
    waits text,
    before_image text,
    writes text,
    truth text,
    PRIMARY KEY ((family, bucket), projection, key)
) WITH gc_grace_seconds = 10800
   AND compaction = {'class': 'LeveledCompactionStrategy'};

-- Every state that a finding went through, with its before-image: the undo period is the TTL.
CREATE TABLE IF NOT EXISTS $ks.finding_log (
    day date,
    bucket int,
    at timeuuid,
    family text,
    projection text,
    key text,
    kind text,
    state text,
    finding text,
    PRIMARY KEY ((day, bucket), at)
) WITH default_time_to_live = 7776000
   AND compaction = {'class': 'TimeWindowCompactionStrategy',
                     'compaction_window_unit': 'DAYS', 'compaction_window_size': 3};

-- Lineage, the same by message and by row. `seen` is always true: its TTL marks an entry that is
-- expiring. What is found by row is found by message too: that one is written first. had_at (µs of
-- our clock): when the truth last had a row whose delete had been received.
CREATE TABLE IF NOT EXISTS $ks.lineage_by_message (
    messageid uuid,
    mailboxid uuid,
    uid bigint,
    seen boolean,
    in_truth boolean,
    recorded_at bigint,
    had_at bigint,
    PRIMARY KEY (messageid, mailboxid, uid)
);

CREATE TABLE IF NOT EXISTS $ks.lineage_by_row (
    mailboxid uuid,
    uid bigint,
    messageid uuid,
    seen boolean,
    in_truth boolean,
    recorded_at bigint,
    had_at bigint,
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

-- sent_at: of a delete of ours, µs of our clock; recorded before the delete is sent.
CREATE TABLE IF NOT EXISTS $ks.projection_deletes (
    mailboxid uuid,
    uid bigint,
    deleted_at bigint,
    sent_at bigint,
    PRIMARY KEY ((mailboxid, uid), deleted_at)
) WITH default_time_to_live = 7776000;

CREATE TABLE IF NOT EXISTS $ks.mailbox_deletes (
    mailboxid uuid,
    deleted_at bigint,
    PRIMARY KEY (mailboxid, deleted_at)
) WITH default_time_to_live = 7776000;

-- Keys that are due for a look without an event: a cell expires, or a table is tried again. minute:
-- from the epoch; rows leave by TTL, each stream reads on from its newest bookmark.
CREATE TABLE IF NOT EXISTS $ks.expiries (
    minute int,
    due bigint,
    mailboxid uuid,
    uid bigint,
    messageid uuid,
    PRIMARY KEY (minute, due, mailboxid, uid)
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

-- Since when every change has reached the stream, when that was noted, the watched tables as they
-- were captured then, and the ends of both halves of the last sweep: of the truth and the listing.
CREATE TABLE IF NOT EXISTS $ks.watches (
    name text,
    since bigint,
    noted_at bigint,
    captured text,
    swept_at bigint,
    listed_at bigint,
    PRIMARY KEY (name)
);

-- One row for each opening of a breaker; it is open while closed_at is null. Closing writes another
-- cell, so the clocks of two hosts cannot undo each other. generation (µs, also of owner, pauses,
-- holds): only goes up; `reconcilers.limits.generation`.
CREATE TABLE IF NOT EXISTS $ks.breakers (
    scope text,
    breaker text,
    opened_at bigint,
    reason text,
    closed_at bigint,
    generation bigint static,
    PRIMARY KEY (scope, breaker, opened_at)
);

-- Up to where a stream has settled its topics. No TTL: a stream that was off for weeks goes on from
-- there. offsets and ids as JSON: what is settled by topic and partition, the ids of topics and
-- cluster. heard: node, topic, partition, number and time of a canary, since when one is missing.
CREATE TABLE IF NOT EXISTS $ks.settled_offsets (
    stream text,
    recorded_at bigint,
    offsets text,
    ids text,
    heard text,
    PRIMARY KEY (stream)
);

-- Settled offsets that an operator gave a name.
CREATE TABLE IF NOT EXISTS $ks.named_bookmarks (
    stream text,
    name text,
    recorded_at bigint,
    offsets text,
    ids text,
    heard text,
    PRIMARY KEY (stream, name)
);

-- Which slice a stream fails at. ends and until as JSON: positions by topic and partition.
CREATE TABLE IF NOT EXISTS $ks.failing_slices (
    stream text,
    slice text,
    times int,
    unheard int,
    since bigint,
    ends text,
    most bigint,
    until text,
    PRIMARY KEY (stream)
);

-- One row: the keyspace of James that all of this is of. Written by lightweight transactions.
CREATE TABLE IF NOT EXISTS $ks.owner (
    name text,
    james text,
    generation bigint,
    PRIMARY KEY (name)
);

-- An end is written to other cells, as of breakers. what: all, removals, pilot, or a projection or
-- tally. until: µs, null: until it is ended. pilot: users, mailboxes, systems and kinds, as JSON.
CREATE TABLE IF NOT EXISTS $ks.pauses (
    scope text,
    asked_at bigint,
    what text,
    who text,
    reason text,
    until bigint,
    pilot text,
    ended_at bigint,
    ended_by text,
    end_reason text,
    generation bigint static,
    PRIMARY KEY (scope, asked_at, what)
);

-- bucket = hash of the key, 16 of them, as of findings. It stands while ended_at is null.
CREATE TABLE IF NOT EXISTS $ks.holds (
    family text,
    bucket int,
    projection text,
    key text,
    asked_at bigint,
    who text,
    reason text,
    ended_at bigint,
    ended_by text,
    end_reason text,
    generation bigint static,
    PRIMARY KEY ((family, bucket), projection, key, asked_at)
);

-- systems: names of projections, with commas. Times are µs.
CREATE TABLE IF NOT EXISTS $ks.sweeps (
    scope text,
    began_at bigint,
    who text,
    reason text,
    systems text,
    ranges int,
    truth_swept_at bigint,
    ended_at bigint,
    outcome text,
    PRIMARY KEY (scope, began_at)
) WITH CLUSTERING ORDER BY (began_at DESC);

-- number: the first of so many adjacent ranges. Deleted when the sweep has ended.
CREATE TABLE IF NOT EXISTS $ks.swept_ranges (
    scope text,
    began_at bigint,
    table_name text,
    number int,
    rows bigint,
    suspects bigint,
    ranges int,
    PRIMARY KEY ((scope, began_at), table_name, number)
);

-- What was written before `at` (µs) may never have been heard of. Expires after a year.
CREATE TABLE IF NOT EXISTS $ks.losses (
    name text,
    at bigint,
    why text,
    PRIMARY KEY (name, at, why)
) WITH CLUSTERING ORDER BY (at DESC, why DESC);

-- bucket: of `BUCKETS`, by the key's text; reason: a kind. Times are µs.
CREATE TABLE IF NOT EXISTS $ks.lost_rows (
    family text,
    bucket int,
    key text,
    reason text,
    counted_at bigint,
    seen_at bigint,
    PRIMARY KEY ((family, bucket), key)
);

-- Which live stream may repair. Written by lightweight transactions.
CREATE TABLE IF NOT EXISTS $ks.lease (
    name text PRIMARY KEY,
    holder text,
    host text
);
"""

STEP = SchemaStep(1, "the tables of the first release", CQL)
