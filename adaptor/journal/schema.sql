-- The journal in its present format. What was acknowledged stands here; everything else can be rebuilt from it.
CREATE TABLE bag (
    id          INTEGER PRIMARY KEY,
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
    user_changed REAL                       -- when that was
);
CREATE TABLE forecast (                     -- the first forecast of each bag, which is held against what came
    bag         INTEGER PRIMARY KEY,
    made        REAL NOT NULL,
    finished    INTEGER NOT NULL,           -- tasks with a result by then
    tasks       INTEGER NOT NULL,           -- tasks that had a result by then, or could still get one
    cost_low    REAL NOT NULL,              -- credits
    cost_value  REAL NOT NULL,
    cost_high   REAL NOT NULL,
    end_low     REAL NOT NULL,
    end_value   REAL NOT NULL,
    end_high    REAL NOT NULL
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
    PRIMARY KEY (bag, number)
) WITHOUT ROWID;
CREATE TABLE pilot (
    id              INTEGER PRIMARY KEY,
    site            TEXT NOT NULL,
    tag             TEXT NOT NULL UNIQUE,
    job             TEXT,                   -- the scheduler's id
    state           TEXT NOT NULL,
    p               INTEGER NOT NULL,
    tr              INTEGER NOT NULL,
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
    reclaim_time    REAL                    -- seconds from the call for its node until nothing of it ran
);
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
CREATE TABLE credit (                       -- the ledger: its entries in their order
    id      INTEGER PRIMARY KEY,
    entry   BLOB NOT NULL                   -- msgpack Entry
);
CREATE TABLE idleness (                     -- how long nodes stay idle
    site    TEXT PRIMARY KEY,
    known   BLOB NOT NULL                   -- msgpack Idleness
);
