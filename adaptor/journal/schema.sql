-- The journal in its present format. What was acknowledged stands here; everything else can be rebuilt from it.
-- The ids of bags and pilots never come again, whatever is forgotten: pilots are found by them at schedulers.
CREATE TABLE bag (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    spec        BLOB NOT NULL,              -- msgpack BagSpec
    name        TEXT NOT NULL,
    tasks       INTEGER NOT NULL,
    submitted   REAL NOT NULL,
    ended       REAL,
    waiting     INTEGER NOT NULL,           -- counts of the tasks in each state
    leased      INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    retried     INTEGER NOT NULL DEFAULT 0, -- failed attempts that were tried again
    runtime     REAL NOT NULL DEFAULT 0,    -- sum over the done tasks, seconds
    first_done  REAL,
    user_change TEXT,                       -- what its user changed last, between submission and end
    user_changed REAL,                      -- when that was
    open        INTEGER NOT NULL DEFAULT 0, -- 1: tasks may still be appended
    events      INTEGER NOT NULL DEFAULT 0, -- the number of its last event
    client_key  TEXT,                       -- the client's name for this submission
    blocked     INTEGER NOT NULL DEFAULT 0, -- tasks that wait for others, or for bags
    linked      INTEGER NOT NULL DEFAULT 0, -- 1: some task runs after others
    guard       BLOB                        -- msgpack Guard: its pause, what is watched; NULL: as submitted
);
CREATE UNIQUE INDEX bag_by_key ON bag (client_key) WHERE client_key IS NOT NULL;
CREATE TABLE added (                        -- tasks that clients have added to bags: each part counts once
    bag         INTEGER NOT NULL,
    client_key  TEXT NOT NULL,
    sent        INTEGER NOT NULL,           -- tasks that came by this key
    first       INTEGER NOT NULL,           -- number in the bag of the first of its last part
    tasks       INTEGER NOT NULL,           -- of its last part
    PRIMARY KEY (bag, client_key)
) WITHOUT ROWID;
CREATE TABLE unpublished (                  -- opened bags that no question sees, and which may never be published
    bag         INTEGER PRIMARY KEY,        -- the number that it will have
    client_key  TEXT NOT NULL UNIQUE,       -- as of the bag
    question    BLOB NOT NULL,              -- msgpack api.Open
    at          REAL NOT NULL,              -- when the last of its tasks came
    linked      INTEGER NOT NULL            -- of its tasks, those that run after others
);
CREATE INDEX bag_unended ON bag (id) WHERE ended IS NULL;
CREATE TABLE forgotten (                    -- forgotten bags of which rows are left to be removed
    bag         INTEGER PRIMARY KEY,
    cpus        INTEGER NOT NULL            -- processors of each of its tasks
);
CREATE TABLE forecast (                     -- the first forecast of each bag, which is held against what came
    bag         INTEGER PRIMARY KEY,
    made        REAL NOT NULL,
    finished    INTEGER NOT NULL,           -- tasks with a result by then
    tasks       INTEGER NOT NULL,           -- tasks that had a result by then, or could still get one
    cost_low    REAL,                       -- credits; NULL: the bag does not pay
    cost_value  REAL,
    cost_high   REAL,
    end_low     REAL NOT NULL,
    end_value   REAL NOT NULL,
    end_high    REAL NOT NULL
);
CREATE TABLE raw_forecast (                 -- ends as they were simulated: what came of them calibrates later forecasts
    bag         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    made        REAL NOT NULL,
    unit        REAL NOT NULL,              -- seconds that are nearly nothing
    low         REAL NOT NULL,
    value       REAL NOT NULL,
    high        REAL NOT NULL,
    PRIMARY KEY (bag, kind)
) WITHOUT ROWID;
CREATE TABLE forecast_past (                -- how many first forecasts of forgotten bags held
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    counted     INTEGER NOT NULL,
    cost_held   INTEGER NOT NULL,
    end_held    INTEGER NOT NULL,
    not_counted BLOB NOT NULL,              -- msgpack, by reason
    costed      INTEGER NOT NULL DEFAULT 0  -- those of bags that pay
);
CREATE TABLE task (
    bag         INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL DEFAULT 'waiting',
    attempts    INTEGER NOT NULL DEFAULT 0,
    charged     INTEGER NOT NULL DEFAULT 0, -- its own failures
    result      INTEGER,                    -- the attempt whose end is the result: set once
    error       TEXT,
    input       BLOB NOT NULL,              -- msgpack TaskInput
    event       INTEGER,                    -- the number of its last event: it ended, or was put back
    id          TEXT,                       -- by which other tasks of the bag name it
    needs       BLOB,                       -- msgpack OwnNeeds, in place of what the bag says; NULL: none
    memory      INTEGER,                    -- bytes that it gets since it ran out of memory; NULL: it has not
    PRIMARY KEY (bag, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX task_by_id ON task (bag, id) WHERE id IS NOT NULL;
CREATE INDEX task_by_event ON task (bag, event) WHERE event IS NOT NULL;
CREATE TABLE kind (                         -- what bags have shown of the kinds of their tasks, by site
    key         TEXT NOT NULL,              -- of the kind: a digest
    site        TEXT NOT NULL,
    bag         INTEGER NOT NULL,
    at          REAL NOT NULL,              -- when it was written: at the end of the bag, or before
    record      BLOB NOT NULL,              -- msgpack KindRecord
    PRIMARY KEY (key, site, bag)
) WITHOUT ROWID;
CREATE INDEX kind_by_bag ON kind (bag);
CREATE INDEX kind_by_time ON kind (at);
CREATE TABLE pilot (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    site            TEXT NOT NULL,
    tag             TEXT NOT NULL UNIQUE,
    job             TEXT,                   -- the scheduler's id
    state           TEXT NOT NULL,
    p               INTEGER NOT NULL,
    tr              INTEGER NOT NULL,
    least           INTEGER,                -- seconds with which it may start; NULL: tr
    submitted       REAL NOT NULL,          -- when the intent was written
    predicted_start REAL,
    started         REAL,
    ended           REAL,
    freed           INTEGER NOT NULL DEFAULT 0, -- processors that it gave back before its end
    freed_at_sum    REAL NOT NULL DEFAULT 0,    -- the sum over them of the time of it
    reason          TEXT NOT NULL,
    end_reason      TEXT NOT NULL DEFAULT '',
    bag             INTEGER,                -- the only one that it serves; NULL: all that share
    donated_node    TEXT NOT NULL DEFAULT '', -- empty: a formal request
    reclaim_time    REAL,                   -- seconds from the call for its node until nothing of it ran
    past_used       REAL NOT NULL DEFAULT 0, -- processor-seconds that became results of forgotten bags
    partition       TEXT NOT NULL DEFAULT '', -- of the site, by name; empty: it has only one
    array           INTEGER,                -- the first pilot of those with which it was decided; NULL: alone
    held            INTEGER                 -- processors that it got by the scheduler's own count; NULL: not told
);
CREATE INDEX pilot_by_state ON pilot (state);
CREATE TABLE local_run (                    -- the last local jobs that were seen to end
    id          INTEGER PRIMARY KEY,
    site        TEXT NOT NULL,
    owner       TEXT NOT NULL,              -- a salted hash of the user; empty: not known
    run_limit   INTEGER NOT NULL,           -- seconds; 0: not known
    share       REAL NOT NULL               -- of the limit that it ran
);
CREATE INDEX local_run_by_site ON local_run (site, id);
CREATE TABLE attempt (
    bag         INTEGER NOT NULL,
    task        INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    pilot       INTEGER NOT NULL,
    node        TEXT NOT NULL,
    worker      TEXT NOT NULL,
    leased      REAL NOT NULL,
    outcome     TEXT,                       -- NULL while a worker holds it
    started     REAL,
    ended       REAL,
    wall        REAL,
    cpu         REAL,
    peak_memory INTEGER,
    exit_code   INTEGER,
    signal      INTEGER,
    error       TEXT,
    suspect     INTEGER NOT NULL DEFAULT 0, -- 1: it ran when its worker died, and counts against max_lost
    peak_gpu_memory INTEGER,                -- bytes; NULL: not known
    answer      BLOB,                       -- what a call came to (protocol/calls.py)
    processors  INTEGER,                    -- that it held; NULL: as its bag says
    PRIMARY KEY (bag, task, number)
) WITHOUT ROWID;
CREATE INDEX attempt_by_pilot ON attempt (pilot, outcome);
CREATE INDEX attempt_open ON attempt (worker) WHERE outcome IS NULL;
CREATE TABLE decision (
    id      INTEGER PRIMARY KEY,
    time    REAL NOT NULL,
    site    TEXT NOT NULL,
    pilot   INTEGER,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL
);
CREATE TABLE decision_bag (                 -- the bags that a decision is about; none: its pilot, or all of its site
    decision    INTEGER NOT NULL,
    bag         INTEGER NOT NULL,
    PRIMARY KEY (decision, bag)
) WITHOUT ROWID;
CREATE INDEX decision_by_pilot ON decision (pilot) WHERE pilot IS NOT NULL;
CREATE TABLE credit (                       -- the ledger: its entries in their order
    id      INTEGER PRIMARY KEY,
    entry   BLOB NOT NULL,                  -- msgpack Entry
    pilot   INTEGER,                        -- the pilot that it is about
    bag     INTEGER                         -- the bag whose budget it is
);
CREATE INDEX credit_by_pilot ON credit (pilot) WHERE pilot IS NOT NULL;
CREATE INDEX credit_by_bag ON credit (bag) WHERE bag IS NOT NULL;
CREATE TABLE idleness (                     -- how long nodes stay idle
    site    TEXT PRIMARY KEY,
    known   BLOB NOT NULL                   -- msgpack Idleness
);
CREATE TABLE starts_seen (                  -- how forecasts of starts held, and how long jobs waited
    site    TEXT PRIMARY KEY,
    judged  BLOB NOT NULL                   -- msgpack KeptStarts
);
CREATE TABLE tried_sizes (                  -- which sizes of requests a scheduler did not take
    site   TEXT PRIMARY KEY,
    tried  BLOB NOT NULL                    -- as msgpack
);
CREATE TABLE notice (                       -- messages about bags: each is sent at most once
    bag     INTEGER NOT NULL,
    event   TEXT NOT NULL,                  -- end, pause, failure
    channel TEXT NOT NULL,                  -- empty: the hook
    text    TEXT NOT NULL,
    at      REAL NOT NULL,
    state   TEXT NOT NULL DEFAULT 'due',    -- due, sending, sent, failed, unknown
    PRIMARY KEY (bag, event, channel)
) WITHOUT ROWID;
CREATE INDEX notice_due ON notice (at) WHERE state = 'due';
CREATE TABLE granted_key (                  -- client keys with a grant
    name        TEXT PRIMARY KEY,
    certificate TEXT NOT NULL,              -- PEM
    allowed     BLOB NOT NULL,              -- msgpack Grant
    revoked     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE granted_bag (                  -- their bags; what forgotten ones have cost counts too
    bag         INTEGER PRIMARY KEY,
    name        TEXT NOT NULL               -- of the key
);
